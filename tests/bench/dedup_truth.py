"""Every pair of a corpus and its exact similarity, found without hashing into bands.

Written apart from `factory.data.dedup`, with other tools: shingles are strings, cut by Unicode
properties of the `regex` package, and intersections are a sparse matrix product.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np
import regex
from numpy.typing import NDArray
from scipy import sparse

_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TOKEN = regex.compile(
    rf"[{_ALONE}--\p{{N}}]|[\p{{L}}\p{{M}}\p{{N}}--[{_ALONE}--\p{{N}}]]+", regex.V1
)
_INVISIBLE = regex.compile(r"\p{Cf}+")
WIDTH = 5
ROWS = 1_000


def shingles(text: str) -> frozenset[str]:
    """Runs of five tokens; a shorter text is one shingle."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    tokens = _TOKEN.findall(_INVISIBLE.sub("", folded))
    if len(tokens) < WIDTH:
        return frozenset(["\0".join(tokens)])
    return frozenset(map(" ".join, zip(*(tokens[step:] for step in range(WIDTH)), strict=False)))


def pairs(texts: Sequence[str], threshold: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Codes `i * len(texts) + j` of all pairs i < j at or above the threshold, and similarities."""
    matrix, sizes = _matrix(texts)
    transposed = matrix.T.tocsr()
    codes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    similarities: list[NDArray[np.float64]] = [np.empty(0)]
    for start in range(0, len(texts), ROWS):
        product = (matrix[start : start + ROWS] @ transposed).tocoo()
        first, second = product.row.astype(np.int64) + start, product.col.astype(np.int64)
        similarity = product.data / (sizes[first] + sizes[second] - product.data)
        found = (first < second) & (similarity >= threshold)
        codes.append(first[found] * len(texts) + second[found])
        similarities.append(similarity[found])
    return np.concatenate(codes), np.concatenate(similarities)


def _matrix(texts: Sequence[str]) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """Texts by shingles. Python's own hash of a string is its column, which no tool here uses."""
    sets = [np.fromiter(map(hash, shingles(text)), np.int64) for text in texts]
    sizes = np.array([len(found) for found in sets])
    _, columns, counts = np.unique(np.concatenate(sets), return_inverse=True, return_counts=True)
    rows = np.repeat(np.arange(len(texts)), sizes)
    shared = counts[columns] > 1
    ones = np.ones(int(shared.sum()), np.int32)
    shape = (len(texts), len(counts))
    return sparse.csr_matrix((ones, (rows[shared], columns[shared])), shape=shape), sizes
