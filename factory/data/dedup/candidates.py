"""MinHash-LSH: which earlier documents share a band with this one.

Documents are added one at a time in the total order. Only groups that hold two documents or more
are kept, each as a run of slots that fills up; nothing is ever written per pair, so memory grows
with documents and bands, whatever the data.
"""

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.order import Collection


class Candidates:
    """The index over all bands. Memory: 12 bytes per document and band in which it is not alone."""

    def __init__(self, collection: Collection, documents: NDArray[np.int64]) -> None:
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
        group_sizes = np.concatenate(sizes)
        self._starts = (np.cumsum(group_sizes) - group_sizes).tolist()
        self._filled = [0] * len(self._starts)
        self._slots = np.empty(int(group_sizes.sum()), dtype=np.int32)
        who = np.concatenate(members)
        order = np.argsort(who, kind="stable")
        self._groups = np.concatenate(groups)[order]
        self._bounds = np.searchsorted(who[order], np.arange(len(collection) + 1))
        self._last = np.empty(len(collection), dtype=np.int32)
        self.documents: list[int] = np.unique(who).tolist()
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
