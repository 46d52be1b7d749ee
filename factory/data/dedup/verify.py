"""Exact Jaccard similarity of one document to many: every candidate is confirmed, none estimated.

To a few others: two sorted sets are merged and neighbours compared. To many: the shingles of the
one go into a table addressed by their own low bits, so that looking those of the others up is one
gather. Two that want the same place: one of them goes to a further table, so counts are exact.
"""

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.order import Collection
from factory.data.dedup.shingles import NO_SHINGLE

SHINGLES_AT_ONCE = 1 << 15
"""Looked up in one go: small, so that arrays are reused from the cache and memory stays bounded."""

MERGED = 4
"""Up to so many others a merge each costs less than a table for all."""

_ROOM = 32
"""Places per shingle in a table: few collide, and the table of a usual document fits a cache."""

_BITS_PER_ROUND = 19
"""A later round uses other bits of the hash."""


_NOTHING = np.empty(0)


class Verifier:
    """Compares documents of a collection."""

    def __init__(self, collection: Collection, threshold: float) -> None:
        self._collection = collection
        self._sizes = collection.sizes
        self._threshold = threshold

    def confirmed(
        self, document: int, others: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Those of the others at or above the threshold, and their similarities."""
        if not len(others):
            return others, _NOTHING
        size = int(self._sizes[document])
        sizes = self._sizes[others]
        # The smaller set at most covers the larger: their ratio bounds the similarity.
        possible = np.minimum(sizes, size) / np.maximum(sizes, size) >= self._threshold
        others, sizes = others[possible], sizes[possible]
        if not len(others):
            return others, _NOTHING
        if len(others) > MERGED:
            common = in_common(self._collection, document, others)
        else:
            mine, rest = self._collection.shingles(document), map(self._collection.shingles, others)
            common = np.array([_shared(mine, other) for other in rest])
        similarity = common / (sizes + (size - common))
        close = similarity >= self._threshold
        return others[close], similarity[close]


def in_common(
    collection: Collection, document: int, others: NDArray[np.int32]
) -> NDArray[np.int64]:
    """How many shingles a document shares with each of many others."""
    tables = _tables(collection.shingles(document))
    sizes = collection.sizes[others]
    ends = np.cumsum(sizes)
    counts: list[NDArray[np.int64]] = []
    start = 0
    while start < len(others):
        limit = (ends[start - 1] if start else 0) + SHINGLES_AT_ONCE
        stop = max(start + 1, int(np.searchsorted(ends, limit)))
        asked = collection.gather(others[start:stop])
        found = _found(tables, asked)
        offsets = ends[start:stop] - sizes[start:stop] - (ends[start] - sizes[start])
        counts.append(np.add.reduceat(found, offsets, dtype=np.int64))
        start = stop
    return counts[0] if len(counts) == 1 else np.concatenate(counts)


def _shared(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> int:
    """How many values two sorted, distinct arrays have in common."""
    both = np.concatenate([one, other])
    both.sort(kind="stable")  # merges runs that are sorted already
    return int(np.count_nonzero(both[1:] == both[:-1]))


type _Table = tuple[np.uint64, np.uint64, NDArray[np.uint64]]
"""How far hashes are shifted, the mask that makes a place of them, and what is in each place."""


def _tables(shingles: NDArray[np.uint64]) -> list[_Table]:
    tables: list[_Table] = []
    while len(shingles):
        places = 1 << (len(shingles) * _ROOM - 1).bit_length()
        shift = np.uint64(_BITS_PER_ROUND * len(tables) % 58)
        mask = np.uint64(places - 1)
        table = np.full(places, NO_SHINGLE)
        where = (shingles >> shift) & mask
        table[where] = shingles
        tables.append((shift, mask, table))
        shingles = shingles[table[where] != shingles]
    return tables


def _found(tables: list[_Table], asked: NDArray[np.uint64]) -> NDArray[np.bool_]:
    shift, mask, table = tables[0]
    found = table.take((asked & mask).view(np.int64)) == asked
    for shift, mask, table in tables[1:]:
        found |= table.take(((asked >> shift) & mask).view(np.int64)) == asked
    return found
