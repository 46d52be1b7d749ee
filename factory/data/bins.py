"""Bins: how many numbers of which size, on a logarithmic scale that is the same everywhere.

Four bins to each doubling, so that two histograms are added bin by bin, whatever was counted where.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

PER_DOUBLING = 4
DOUBLINGS = 48

EDGES: tuple[int, ...] = (
    0,
    *sorted({round(2 ** (step / PER_DOUBLING)) for step in range(DOUBLINGS * PER_DOUBLING + 1)}),
)
"""Lower edges: 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, ..."""


@dataclass
class Bins:
    """A histogram of whole numbers from 0 up, with what it rounds away: total, least, most."""

    counts: Counter[int] = field(default_factory=Counter[int])
    """How many by index into `EDGES`."""

    total: int = 0
    least: int | None = None
    most: int | None = None

    @property
    def count(self) -> int:
        """How many numbers."""
        return self.counts.total()

    def add(self, number: int) -> None:
        """Count a number in."""
        self.counts[bisect_right(EDGES, number) - 1] += 1
        self.total += number
        self._reach(number, number)

    def merge(self, other: "Bins") -> None:
        """Count in what another one has counted."""
        self.counts += other.counts
        self.total += other.total
        if other.least is not None and other.most is not None:
            self._reach(other.least, other.most)

    def quantile(self, share: float) -> float:
        """The number below which this share lies, within a bin's width; 0 where there is none."""
        wanted, seen = share * self.count, 0
        for index in sorted(self.counts):
            inside = self.counts[index]
            if seen + inside >= wanted:
                low, high = EDGES[index], EDGES[index + 1]
                guess = low + (high - 1 - low) * (wanted - seen) / inside
                return min(max(guess, self.least or 0), self.most or 0)
            seen += inside
        return float(self.most or 0)

    def facts(self) -> dict[str, Any]:
        """As JSON: counts by lower edge."""
        by_edge = {str(EDGES[index]): self.counts[index] for index in sorted(self.counts)}
        return {"bins": by_edge, "total": self.total, "least": self.least, "most": self.most}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The inverse of `facts`."""
        index = {edge: place for place, edge in enumerate(EDGES)}
        counts = Counter({index[int(edge)]: count for edge, count in facts["bins"].items()})
        return cls(counts, facts["total"], facts["least"], facts["most"])

    def _reach(self, least: int, most: int) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)
