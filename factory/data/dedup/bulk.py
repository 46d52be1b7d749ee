"""Exact Jaccard similarity of many pairs at once, as `verify` has it for one document at a time.

Mostly the two sorted sets of a pair are merged, many pairs in one sort: the number of the pair
takes the top bits that shingles leave free. Where few documents make many pairs (form letters),
each becomes a row of bits, one for every shingle that two of them share.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.arrow import arrow
from factory.data.dedup.order import Collection
from factory.data.dedup.shingles import HASH_BITS, SPARE_BITS
from factory.data.dedup.verify import in_common

PAIRS_AT_ONCE = 1 << SPARE_BITS
SHINGLES_AT_ONCE = 1 << 16
"""Merged in one go, so that they stay in the cache; one pair may have more."""

CROWD = 32
"""A document with so many candidates is compared with all of them together."""

PAIRS_PER_ROW = 8
"""Making a row of bits costs as much as comparing by other means this many times."""

TABLE = 1 << 18
"""Shingles that are made a table of bits at once."""


def confirmed(
    collection: Collection,
    pairs: tuple[NDArray[np.int32], NDArray[np.int32]],
    threshold: float,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """The pairs at or above the threshold, and their similarities."""
    first, second = pairs
    one, other = collection.sizes[first], collection.sizes[second]
    # The smaller set at most covers the larger: their ratio bounds the similarity.
    possible = np.minimum(one, other) / np.maximum(one, other) >= threshold
    first, second, sizes = first[possible], second[possible], (one + other)[possible]
    common = _common(collection, first, second)
    similarity = common / (sizes - common)
    close = similarity >= threshold
    return first[close], second[close], similarity[close]


def _common(
    collection: Collection, first: NDArray[np.int32], second: NDArray[np.int32]
) -> NDArray[np.int64]:
    crowded = np.bincount(second)[second] >= CROWD
    if not crowded.any():
        return _merged(collection, first, second)
    common = np.empty(len(first), dtype=np.int64)
    common[crowded] = _of_crowd(collection, first[crowded], second[crowded])
    common[~crowded] = _merged(collection, first[~crowded], second[~crowded])
    return common


def _merged(
    collection: Collection, first: NDArray[np.int32], second: NDArray[np.int32]
) -> NDArray[np.int64]:
    common = np.empty(len(first), dtype=np.int64)
    sizes = collection.sizes[first] + collection.sizes[second]
    ends = np.cumsum(sizes)
    both = np.stack([first, second], axis=1)
    start = 0
    while start < len(first):
        limit = (ends[start - 1] if start else 0) + SHINGLES_AT_ONCE
        fitting = int(np.searchsorted(ends, limit, side="right"))
        stop = min(max(start + 1, fitting), start + PAIRS_AT_ONCE)
        numbers = np.arange(stop - start, dtype=np.uint64) << np.uint64(HASH_BITS)
        keys = collection.gather(both[start:stop].reshape(-1))
        keys |= np.repeat(numbers, sizes[start:stop])
        keys.sort(kind="stable")  # merges runs that are sorted already
        twice = keys[1:][keys[1:] == keys[:-1]] >> np.uint64(HASH_BITS)
        common[start:stop] = np.bincount(twice.view(np.int64), minlength=stop - start)
        start = stop
    return common


def _of_crowd(
    collection: Collection, first: NDArray[np.int32], second: NDArray[np.int32]
) -> NDArray[np.int64]:
    documents, rows = np.unique(np.concatenate([first, second]), return_inverse=True)
    if len(first) < PAIRS_PER_ROW * len(documents):
        return _by_lookup(collection, first, second)
    if collection.sizes[documents].sum() > TABLE:
        low = first < np.median(first)
        if low.any():
            common = np.empty(len(first), dtype=np.int64)
            for half in (low, ~low):
                common[half] = _of_crowd(collection, first[half], second[half])
            return common
    bits = _bits(collection, documents.astype(np.int32))
    if bits is None:
        return _by_lookup(collection, first, second)
    one, other = rows[: len(first)], rows[len(first) :]
    common = np.zeros(len(first), dtype=np.int64)
    for word in bits:
        common += np.bitwise_count(word[one] & word[other])
    return common


def _bits(collection: Collection, documents: NDArray[np.int32]) -> NDArray[np.uint64] | None:
    """A column per document; nothing where they have too little in common for that to pay."""
    sizes = collection.sizes[documents]
    values: Any = arrow(collection.gather(documents))
    which: NDArray[np.int32] = values.dictionary_encode().indices.to_numpy()
    shared = np.bincount(which) > 1
    words = -(-int(shared.sum()) // 64)
    if words > sizes.mean():
        return None
    table = np.zeros((len(documents), words * 64), dtype=bool)
    known = shared[which]
    places = np.cumsum(shared) - 1
    table[np.repeat(np.arange(len(documents)), sizes)[known], places[which[known]]] = True
    return np.packbits(table, axis=1).view(np.uint64).T.copy()


def _by_lookup(
    collection: Collection, first: NDArray[np.int32], second: NDArray[np.int32]
) -> NDArray[np.int64]:
    """For one later document after the other."""
    order = np.argsort(second, kind="stable")
    first, second = first[order], second[order]
    _, starts = np.unique(second, return_index=True)
    common = np.empty(len(first), dtype=np.int64)
    for start, stop in pairwise([*starts.tolist(), len(second)]):
        common[order[start:stop]] = in_common(collection, int(second[start]), first[start:stop])
    return common
