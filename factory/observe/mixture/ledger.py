"""`Ledger`: what one rank has been given, batch after batch, in whole numbers.

Samples are counted apart exactly, in one bit for each sample of every source. Every loader worker
reads a range of each source that no other worker reads, so what ranks count adds up.
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data.stream.account import BatchAccount
from factory.errors import RunFailed
from factory.observe.mixture.totals import COLUMNS, DISTINCT, Reason, Totals, none

FAST = 1
"""Level of zlib: a map of samples is written while training waits."""


class Ledger:
    """The counts of one rank."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        """Samples of each source, in the order of the lock."""
        self._starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self._seen = np.zeros(-(-int(self._starts[-1]) // 8), np.uint8)
        empty = none(len(self.sizes))
        self._counts, self._positions = empty.counts, empty.positions
        self._dropped: dict[Reason, tuple[int, int]] = {}

    def on_batch(self, account: BatchAccount) -> None:
        """Count a batch that is trained on.

        Raises:
            RuntimeError: it names a sample that its source does not have, a defect of the stream.
        """
        self._counts[:, :DISTINCT] += account.counts
        self._positions += (account.slots, account.ending, account.aligning)
        for name, (samples, tokens) in account.dropped.items():
            before = self._dropped.get(name, (0, 0))
            self._dropped[name] = (before[0] + samples, before[1] + tokens)
        if len(account.drawn):
            self._mark(account.drawn)

    @property
    def totals(self) -> Totals:
        """What has been counted so far; later batches do not change it."""
        return Totals(self._counts.copy(), self._positions.copy(), dict(self._dropped))

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON."""
        return {
            "sizes": list(self.sizes),
            "counts": self._counts.tolist(),
            "positions": self._positions.tolist(),
            "dropped": [[*name, *numbers] for name, numbers in sorted(self._dropped.items())],
            "seen": base64.b64encode(zlib.compress(self._seen.data, FAST)).decode(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint.

        Raises:
            RunFailed: the checkpoint counted other sources.
        """
        if tuple(state["sizes"]) != self.sizes:
            raise RunFailed(
                f"The checkpoint's ledger counts sources of {list(state['sizes'])} samples, but "
                f"the mix has sources of {list(self.sizes)}. Its counts cannot be continued: "
                "resume with the mix.lock that the run was started with."
            )
        self._counts = np.array(state["counts"], np.int64).reshape(-1, len(COLUMNS))
        self._positions = np.array(state["positions"], np.int64)
        self._dropped = {
            (source, reason): (samples, tokens)
            for source, reason, samples, tokens in state["dropped"]
        }
        self._seen = np.frombuffer(
            bytearray(zlib.decompress(base64.b64decode(state["seen"]))), np.uint8
        )

    def absorb(self, other: "Ledger", *, counts: bool = True) -> None:
        """Take over what another rank has seen, and its counts unless someone else does."""
        self._seen |= other._seen
        if counts:
            both = self.totals + other.totals
            self._counts, self._positions = both.counts, both.positions
            self._dropped = dict(both.dropped)

    def _mark(self, drawn: NDArray[np.int64]) -> None:
        source, ordinal = drawn[:, 0], drawn[:, 1]
        at = self._starts[source] + ordinal
        if (ordinal < 0).any() or (at >= self._starts[source + 1]).any():
            raise RuntimeError(
                "A batch names a sample that its source does not have. This is a defect of the "
                "stream; what the run has seen cannot be told from it."
            )
        at = np.unique(at)
        bit = np.left_shift(np.uint8(1), (at & 7).astype(np.uint8))
        new = (self._seen[at >> 3] & bit) == 0
        at, bit = at[new], bit[new]
        np.bitwise_or.at(self._seen, at >> 3, bit)
        owner = np.searchsorted(self._starts, at, side="right") - 1
        self._counts[:, DISTINCT] += np.bincount(owner, minlength=len(self.sizes))


def redistributed(states: Sequence[Mapping[str, Any]], ranks: int) -> list[dict[str, Any]]:
    """The states of all ranks for another number of ranks.

    Which loader worker reads which range stays as it is, but not on which rank it runs. So each
    rank is told of every sample that was seen, and the first one keeps the counts.

    Raises:
        RunFailed: the states count different sources.
    """
    sizes = list(states[0]["sizes"])
    first, other = Ledger(sizes), Ledger(sizes)
    for state in states:
        ledger = Ledger(sizes)
        ledger.restore(state)
        first.absorb(ledger)
        other.absorb(ledger, counts=False)
    return [first.state(), *(other.state() for _ in range(ranks - 1))]
