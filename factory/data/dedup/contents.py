"""Content hashes: 128 bits per document, equal for equal words in equal order.

Words come as 64-bit hashes, so a cryptographic hash of them would add nothing but time: each half
is a polynomial in the words with a base of its own, scrambled. Texts without any word (symbols
only) are compared by their characters, which `hashlib` hashes.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.words import powers, scramble

LANES = 2
CONTENT_BYTES = 8 * LANES

_BASES = (0xD1342543DE82EF95, 0xAF251AF3B0F025B5)


def contents(
    folded: Sequence[str], tokens: NDArray[np.uint64], ends: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """One row of two numbers per document; document i has the tokens up to `ends[i]`."""
    starts = np.concatenate([[0], ends[:-1]])
    lengths = ends - starts
    found = np.empty((len(ends), LANES), dtype=np.uint64)
    worded = np.flatnonzero(lengths)
    if len(worded):
        begins = starts[worded]
        for lane, base in enumerate(_BASES):
            rising, inverses = powers(base, len(tokens))
            sums = np.add.reduceat(tokens * rising, begins)
            sums *= inverses.take(begins)  # the power of a word is its place in its document
            sums += lengths[worded].astype(np.uint64)
            found[worded, lane] = scramble(sums)
    wordless: list[int] = np.flatnonzero(lengths == 0).tolist()
    for number in wordless:
        found[number] = _of_characters(folded[number])
    return found


def in_scope(found: NDArray[np.uint64], marks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes that are equal only where the marks are too; a mark of zeros changes nothing."""
    marked = marks.any(axis=1)
    moved = found.copy()
    moved[marked] = scramble(found[marked] ^ scramble(marks[marked].copy()))
    return moved


def _of_characters(text: str) -> NDArray[np.uint64]:
    digest = hashlib.blake2b(
        " ".join(text.split()).encode("utf-8", "surrogatepass"),
        digest_size=CONTENT_BYTES,
        person=b"no words",
    )
    return np.frombuffer(digest.digest(), dtype=np.uint64)
