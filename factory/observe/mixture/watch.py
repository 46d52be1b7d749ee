"""`Watch`: what has been seen, held against the mix while a run goes on.

Shares are judged over windows: whole logging intervals that together hold enough samples to tell
drift from chance. A window lies within one stage of the mix. What readers had chosen already
when shares changed, with a stage or because a source reached its cap, is trained on afterwards; it
is let pass before the next window begins.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data.stream.account import DOCUMENTS, SAMPLES
from factory.observe.mixture.drift import Judged, judged
from factory.observe.mixture.plan import MAX_EPOCHS, Plan
from factory.observe.mixture.totals import COLUMNS, Totals, none
from factory.reports import MixtureLine, SourceCounts

WINDOW_SAMPLES = 2_000
"""Samples of a window at least: a share of a tenth is then known to two points, three standard
deviations to each side."""

OF = {"sample": "samples", "token": "tokens", "loss_token": "loss tokens"}


class Watch:
    """Turns sums over all ranks into the lines of the ledger. Equal sums give equal lines."""

    def __init__(self, plan: Plan, *, steps: int, since: int = 0, begun: int = 1) -> None:
        self.plan = plan
        self.steps = steps
        self.since = since
        self.begun = begun
        """The attempt in which counting began."""

        nothing = _Mark.of(since, none(len(plan.sources)))
        self._first = self._before = self._window = self._changed = nothing
        self._settled = 0
        self._out: set[int] = set()
        self._spent: frozenset[int] = frozenset()
        self.declared: list[float] | None = None
        """The shares that the last interval should have had; None where they were changing."""

    def due(self, step: int, interval: int) -> bool:
        """Whether a line ends with this step: a logging interval, a stage or the run."""
        return step % interval == 0 or step == self.steps or self.plan.ends(step)

    def line(self, step: int, totals: Totals) -> MixtureLine:
        """The line of a step, from everything that was seen up to it."""
        now = _Mark.of(step, totals)
        spent = self._spent | self.plan.spent(totals)
        notes = [self._cap_note(source, step) for source in sorted(spent - self._spent)]
        steady = spent == self._spent and self._before.documents >= self._settled
        self.declared = self.plan.declared(step, spent) if steady else None
        alarms = self._judge(now, last=step >= self.steps or self.plan.ends(step))
        if notes or self.plan.ends(step):
            self._change(now, spent)
        self._before = now
        return MixtureLine(
            step=step,
            of=max(step, self.steps),
            since=self.since,
            begun=self.begun,
            sources=tuple(
                _counts(source.key, at, totals) for at, source in enumerate(self.plan.sources)
            ),
            slots=int(totals.positions[0]),
            ending=int(totals.positions[1]),
            aligning=int(totals.positions[2]),
            alarms=tuple(alarms),
            notes=tuple(notes),
            reaches=self._reaches(now),
        )

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON."""
        return {
            "since": self.since,
            "begun": self.begun,
            "before": self._before.state(),
            "window": self._window.state(),
            "changed": self._changed.state(),
            "settled": self._settled,
            "out": sorted(self._out),
            "spent": sorted(self._spent),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.since, self.begun = state["since"], state["begun"]
        self._first = _Mark.of(self.since, none(len(self.plan.sources)))
        self._before = _Mark.restored(state["before"])
        self._window = _Mark.restored(state["window"])
        self._changed = _Mark.restored(state["changed"])
        self._settled = state["settled"]
        self._out, self._spent = set(state["out"]), frozenset(state["spent"])

    def _judge(self, now: "_Mark", *, last: bool) -> list[str]:
        """Judge the window if it is full, or as far as it goes at the end of a stage."""
        if self.declared is None:
            self._window = now
            return []
        counts = now.counts - self._window.counts
        samples = int(counts[:, SAMPLES].sum())
        if samples < WINDOW_SAMPLES and not (last and samples):
            return []
        first, self._window = self._window.step + 1, now
        found: list[str] = []
        for source, one in enumerate(judged(counts, self.declared, self.plan.basis)):
            if one.within:
                self._out.discard(source)
            elif source not in self._out:
                self._out.add(source)
                found.append(self._alarm(source, one, first, now.step))
        return found

    def _alarm(self, source: int, one: Judged, first: int, step: int) -> str:
        return (
            f"{self.plan.sources[source].key} has {one.realized:.1%} of the "
            f"{OF[self.plan.basis]} of steps {first:,} to {step:,}; its mix declares "
            f"{one.declared:.1%} and leaves {one.band * 100:.1f} points to chance"
        )

    def _cap_note(self, source: int, step: int) -> str:
        one = self.plan.sources[source]
        return (
            f"{one.key} has been read as often as it may, {one.max_epochs:g} times, about step "
            f"{step:,}; the others take its share"
        )

    def _change(self, now: "_Mark", spent: frozenset[int]) -> None:
        self._window = self._changed = now
        self._settled = now.documents + self.plan.waiting
        self._spent = spent
        self._out.clear()

    def _reaches(self, now: "_Mark") -> dict[str, int]:
        """When sources will have been read as often as they may.

        At their pace since shares last changed. What was drawn and then dropped was read, too.
        """
        before = self._changed if now.step > self._changed.step else self._first
        steps = now.step - before.step
        found: dict[str, int] = {}
        for at, source in enumerate(self.plan.sources):
            seen = now.used[at]
            pace = (seen - before.used[at]) / max(1, steps)
            left = (source.max_epochs or MAX_EPOCHS) * source.size - seen
            if pace > 0 and left > 0 and at not in self._spent:
                step = now.step + math.ceil(left / pace)
                if step <= self.steps:
                    found[source.key] = step
        return found


class _Mark:
    """The counts at the end of a step."""

    def __init__(self, step: int, counts: NDArray[Any], used: list[int]) -> None:
        self.step = step
        self.counts = counts.astype(np.int64)
        self.used = used
        """Samples of each source that were trained on or dropped."""

    @classmethod
    def of(cls, step: int, totals: Totals) -> "_Mark":
        return cls(step, totals.counts, [totals.used(at) for at in range(len(totals.counts))])

    @property
    def documents(self) -> int:
        return int(self.counts[:, DOCUMENTS].sum())

    def state(self) -> list[Any]:
        return [self.step, self.counts.tolist(), self.used]

    @classmethod
    def restored(cls, state: list[Any]) -> "_Mark":
        step, counts, used = state
        return cls(step, np.array(counts, np.int64).reshape(-1, len(COLUMNS)), used)


def _counts(key: str, at: int, totals: Totals) -> SourceCounts:
    numbers: list[int] = totals.counts[at].tolist()
    dropped = {
        reason: numbers_of
        for (source, reason), numbers_of in sorted(totals.dropped.items())
        if source == at and any(numbers_of)
    }
    return SourceCounts(source=key, **dict(zip(COLUMNS, numbers, strict=True)), dropped=dropped)
