"""Token hashes to each document's set of shingles: runs of five tokens, hashed, sorted, distinct.

A document with fewer tokens than a shingle has none: it is compared whole, by its content hash, and
never lumped together with other short ones.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.words import scramble

SPARE_BITS = 6
"""Top bits that no shingle uses: who compares many sets at once numbers them there."""

HASH_BITS = 64 - SPARE_BITS
_HASH_MASK = np.uint64((1 << HASH_BITS) - 1)
NO_SHINGLE = np.uint64(2**64 - 1)
"""No shingle has this value: hashes have 58 bits."""

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)


def shingles(
    tokens: NDArray[np.uint64], ends: NDArray[np.int64], width: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Distinct shingle hashes of each document, ascending, and the offsets of the documents.

    Document i has the tokens `ends[i - 1]` to `ends[i]`.
    """
    bounds = np.zeros(len(ends) + 1, dtype=np.int64)
    positions = len(tokens) - width + 1
    if positions <= 0:
        return np.empty(0, np.uint64), bounds
    hashes = tokens[:positions].copy()
    for step in range(1, width):
        hashes *= _MULTIPLIER
        hashes += tokens[step : step + positions]
    scramble(hashes)
    hashes >>= np.uint64(SPARE_BITS)
    starts = np.concatenate([[0], ends[:-1]])
    # A run must not reach into the next document: the last positions of each start none.
    last = ends[:, None] - np.arange(1, width)
    whole = np.ones(len(tokens), dtype=bool)
    whole[last[last >= starts[:, None]]] = False
    keys = hashes[whole[:positions]]
    np.cumsum(np.maximum(ends - starts - width + 1, 0), out=bounds[1:])
    # One sort for all is three times as slow: each of these stays in the nearest cache.
    for start, end in pairwise(bounds.tolist()):
        keys[start:end].sort()
    distinct = np.empty(len(keys) + 1, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=distinct[1:-1])
    distinct[bounds] = True  # whatever the document before ends with
    distinct = distinct[:-1]
    return keys[distinct], np.concatenate([[0], np.cumsum(distinct)])[bounds]


def scoped(
    found: NDArray[np.uint64], offsets: NDArray[np.int64], salts: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The shingles of each document moved by a number of its scope: equal only within a scope."""
    moved = found + np.repeat(salts, np.diff(offsets))
    moved &= _HASH_MASK
    for start, end in pairwise(offsets.tolist()):
        moved[start:end].sort()
    return moved
