"""Token hashes to each document's set of shingles: runs of five tokens, hashed, sorted, distinct.

A document with fewer tokens than a shingle has none: it is compared whole, by its content hash, and
never lumped together with other short ones.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.words import scramble

GROUP_BITS = 6
GROUP = 1 << GROUP_BITS
"""Documents sorted together: a small sort stays in the cache, and the number of the document takes
the top bits of the key."""

HASH_BITS = 64 - GROUP_BITS
_HASH_MASK = np.uint64((1 << HASH_BITS) - 1)
NO_SHINGLE = np.uint64(2**64 - 1)
"""No shingle has this value: hashes have 58 bits."""

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)


def shingles(
    tokens: NDArray[np.uint64], ends: NDArray[np.int64], width: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Distinct shingle hashes of up to `GROUP` documents, ascending in each, and their offsets.

    Document i has the tokens `ends[i - 1]` to `ends[i]`.
    """
    documents = len(ends)
    offsets = np.zeros(documents + 1, dtype=np.int64)
    positions = len(tokens) - width + 1
    if positions <= 0:
        return np.empty(0, np.uint64), offsets
    hashes = tokens[:positions].copy()
    for step in range(1, width):
        hashes *= _MULTIPLIER
        hashes += tokens[step : step + positions]
    scramble(hashes)
    hashes >>= np.uint64(GROUP_BITS)
    starts = np.concatenate([[0], ends[:-1]])
    # A run must not reach into the next document: the last positions of each start none.
    last = ends[:, None] - np.arange(1, width)
    whole = np.ones(len(tokens), dtype=bool)
    whole[last[last >= starts[:, None]]] = False
    keys = hashes[whole[:positions]]
    owners = np.arange(documents, dtype=np.uint64) << np.uint64(HASH_BITS)
    keys |= np.repeat(owners, np.maximum(ends - starts - width + 1, 0))
    keys.sort()
    distinct = np.empty(len(keys), dtype=bool)
    distinct[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=distinct[1:])
    keys = keys[distinct]
    offsets[1:-1] = np.searchsorted(keys, owners[1:])
    offsets[-1] = len(keys)
    keys &= _HASH_MASK
    return keys, offsets


def scoped(
    found: NDArray[np.uint64], offsets: NDArray[np.int64], scopes: Sequence[int]
) -> NDArray[np.uint64]:
    """The shingles of each document moved by a number of its scope: equal only within a scope."""
    salts = np.array(scopes, dtype=np.uint64)
    moved = found + np.repeat(salts, np.diff(offsets))
    moved &= _HASH_MASK
    for start, end in pairwise(offsets.tolist()):
        moved[start:end].sort()
    return moved
