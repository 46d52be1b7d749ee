"""MinHash-LSH: which earlier documents share a band with this one.

Only groups that hold two documents or more are kept, each as a run of slots. Nothing is ever held
per pair of the collection: one at a time, `Candidates` finds those of a document among the ones
added before; in batches of bounded size, `candidate_pairs` walks through all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.order import Collection

SLOTS_AT_ONCE = 1 << 18
"""Candidates in a batch, counted once per band that they share: 8 bytes each, a few times over."""


class Candidates:
    """The index over all bands. Memory: 12 bytes per document and band in which it is not alone."""

    def __init__(self, collection: Collection, documents: NDArray[np.int64]) -> None:
        shared = _shared(collection, documents)
        self._starts: list[int] = shared.starts.tolist()
        self._filled = [0] * len(self._starts)
        self._slots = np.empty(len(shared.members), dtype=np.int32)
        order = np.argsort(shared.members, kind="stable")
        self._groups = shared.groups[order]
        self._bounds = np.searchsorted(shared.members[order], np.arange(len(collection) + 1))
        self._last = np.empty(len(collection), dtype=np.int32)
        self.documents: list[int] = np.unique(shared.members).tolist()
        """Those that share a band with any other, in the total order."""

    def earlier(self, document: int) -> NDArray[np.int32]:
        """Added documents that share at least one band with this one, each once, in no order."""
        slots, starts, filled = self._slots, self._starts, self._filled
        runs = [
            slots[starts[group] : starts[group] + filled[group]]
            for group in self._of(document)
            if filled[group]
        ]
        if not runs:
            return _NOBODY
        found = np.concatenate(runs)
        # Each document keeps the last place it was written to: distinct without sorting.
        places = np.arange(len(found), dtype=np.int32)
        self._last[found] = places
        return found[self._last[found] == places]

    def add(self, document: int) -> None:
        """Let later documents find this one."""
        slots, starts, filled = self._slots, self._starts, self._filled
        for group in self._of(document):
            slots[starts[group] + filled[group]] = document
            filled[group] += 1

    def _of(self, document: int) -> list[int]:
        return self._groups[self._bounds[document] : self._bounds[document + 1]].tolist()


_NOBODY = np.empty(0, dtype=np.int32)


def candidate_pairs(
    collection: Collection, documents: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Every pair that shares a band, once: the earlier ones and the later ones of a batch.

    A batch takes whole later documents, up to `SLOTS_AT_ONCE` or the candidates of a single one,
    which are fewer than documents times bands.
    """
    shared = _shared(collection, documents)
    begins = shared.starts[shared.groups]
    before = np.arange(len(shared.members)) - begins
    order = np.argsort(shared.members, kind="stable")
    later, begins, before = shared.members[order], begins[order], before[order]
    ends = np.cumsum(before)
    at = 0
    while at < len(later):
        limit = (ends[at - 1] if at else 0) + SLOTS_AT_ONCE
        last = max(at, int(np.searchsorted(ends, limit, side="right")) - 1)
        stop = int(np.searchsorted(later, int(later[last]), side="right"))
        counts = before[at:stop]
        slots = np.repeat(begins[at:stop] - np.cumsum(counts) + counts, counts)
        slots += np.arange(len(slots))
        codes = np.repeat(later[at:stop].astype(np.int64) << 32, counts)
        codes |= shared.members[slots]
        codes.sort()
        distinct = np.ones(len(codes), dtype=bool)
        np.not_equal(codes[1:], codes[:-1], out=distinct[1:])
        codes = codes[distinct]
        yield (codes & 0xFFFFFFFF).astype(np.int32), (codes >> 32).astype(np.int32)
        at = stop


@dataclass(frozen=True)
class _Shared:
    """Who is in which group of two or more; members of a group lie together, in order."""

    members: NDArray[np.int32]
    groups: NDArray[np.int32]
    starts: NDArray[np.int64]


def _shared(collection: Collection, documents: NDArray[np.int64]) -> _Shared:
    members = [np.empty(0, np.int32)]
    groups = [np.empty(0, np.int32)]
    sizes = [np.empty(0, np.int64)]
    seen = 0
    for band in range(collection.bands):
        who, which = _groups(collection.band(band)[documents])
        members.append(documents[who].astype(np.int32))
        groups.append((which + seen).astype(np.int32))
        sizes.append(np.bincount(which))
        seen += len(sizes[-1])
    counts = np.concatenate(sizes)
    return _Shared(np.concatenate(members), np.concatenate(groups), np.cumsum(counts) - counts)


def _groups(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the keys that occur more than once, and the number of their group from 0."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.empty(len(keys), dtype=bool)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    group = np.cumsum(first) - 1
    shared = np.bincount(group)[group] > 1
    kept = first[shared]
    return order[shared], np.cumsum(kept) - 1
