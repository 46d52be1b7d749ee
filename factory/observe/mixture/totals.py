"""`Totals`: counts of every source of a mix, which can be added up over ranks without loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factory.data.stream.account import FIELDS, SAMPLES

COLUMNS = (*FIELDS, "distinct")
"""What is counted of each source; `distinct` are the samples that were seen at least once."""

DISTINCT = COLUMNS.index("distinct")

POSITIONS = ("slots", "ending", "aligning")
"""Positions of all sequences, and the two kinds of padding in them."""

type Reason = tuple[int, str]
"""Source, and why samples of it were dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """What has been counted so far."""

    counts: NDArray[np.int64]
    """Sources by `COLUMNS`."""

    positions: NDArray[np.int64]
    """By `POSITIONS`."""

    dropped: Mapping[Reason, tuple[int, int]]
    """Samples and tokens."""

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.counts + other.counts,
            self.positions + other.positions,
            {
                name: (
                    self.dropped.get(name, (0, 0))[0] + other.dropped.get(name, (0, 0))[0],
                    self.dropped.get(name, (0, 0))[1] + other.dropped.get(name, (0, 0))[1],
                )
                for name in sorted(self.dropped.keys() | other.dropped.keys())
            },
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Totals)
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.positions, other.positions)
            and dict(self.dropped) == dict(other.dropped)
        )

    __hash__ = None  # type: ignore[assignment]

    def used(self, source: int) -> int:
        """Samples of a source that were trained on or dropped."""
        dropped = sum(samples for (at, _), (samples, _) in self.dropped.items() if at == source)
        return int(self.counts[source, SAMPLES]) + dropped

    def vector(self, reasons: Sequence[Reason]) -> NDArray[np.int64]:
        """Everything as one row of numbers, what was dropped in the order of `reasons`."""
        dropped = [number for name in reasons for number in self.dropped.get(name, (0, 0))]
        return np.concatenate((self.counts.ravel(), self.positions, np.array(dropped, np.int64)))

    @classmethod
    def from_vector(
        cls, row: NDArray[np.int64], sources: int, reasons: Sequence[Reason]
    ) -> "Totals":
        """The inverse of `vector`."""
        cells, places = sources * len(COLUMNS), len(POSITIONS)
        rest = row[cells + places :].reshape(-1, 2).tolist()
        return cls(
            row[:cells].reshape(sources, len(COLUMNS)).copy(),
            row[cells : cells + places].copy(),
            {
                name: (samples, tokens)
                for name, (samples, tokens) in zip(reasons, rest, strict=True)
            },
        )


def none(sources: int) -> Totals:
    """Totals before the first batch."""
    return Totals(
        np.zeros((sources, len(COLUMNS)), np.int64), np.zeros(len(POSITIONS), np.int64), {}
    )


def share(amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Amounts over their sum; zeros where there is nothing."""
    total = amounts.sum()
    return amounts / total if total else np.zeros_like(amounts)
