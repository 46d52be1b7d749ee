"""Three clocks for one attempt, and one for a cluster that does not answer.

Each ticks only in its own phases, so that an hour in the queue takes nothing from the time to
start, and a slow pull of the image nothing from the time to run. While the cluster cannot be asked
none of the three ticks: what it did meanwhile is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from factory.spec import RunSpec

type Clock = Literal["queue", "start", "run", "reach"]
"""Each with a limit of its own: waiting for a place, starting in it, running, out of reach."""

START_LIMIT_SECONDS = 1800.0
"""From a place to a driver that runs: pull the image, start Ray, submit."""

CLOSING_SECONDS = 5
"""Beyond the grace of its cluster: what a driver gets to close its messages once it has saved."""

REACH_LIMIT_SECONDS = 600.0
"""Out of reach for longer than this, and the run is shown as paused."""

_PHASES: Mapping[str, Clock] = {
    "queued": "queue",
    "starting": "start",
    "running": "run",
    "unreachable": "reach",
}


LIMITS: dict[Clock, tuple[str, str]] = {
    "queue": (
        "it waited longer than queue_limit_hours for its place",
        "Raise the limit, ask for less, or choose another cluster",
    ),
    "start": (
        "it had its place, and its driver did not run within the limit of a start",
        "What it was waiting for is in the reason; `factory cluster check` tries the image",
    ),
    "run": (
        "it ran longer than run_limit_hours",
        "Its checkpoints are kept; raise the limit to let it go on for longer",
    ),
}
"""What it means that one of an attempt's clocks has run out, and what to do."""


def limits_of(spec: RunSpec) -> dict[Clock, float]:
    """The limits of a run, in seconds."""
    return {
        "queue": spec.queue_limit_hours * 3600,
        "start": START_LIMIT_SECONDS,
        "run": spec.run_limit_hours * 3600,
    }


def clock_of(phase: str) -> Clock | None:
    """The clock that ticks in a phase; none once the attempt has ended or is being stopped."""
    return _PHASES.get(phase)


@dataclass
class Clocks:
    """How long an attempt has been in which kind of phase."""

    limits: Mapping[Clock, float]
    """In seconds."""
    spent: dict[Clock, float] = field(default_factory=dict[Clock, float])
    """May be given, for a run that is adopted."""
    _since: float | None = None
    _ticking: Clock | None = None

    def tick(self, phase: str, now: float) -> frozenset[Clock]:
        """Count the time since the last look, and say which clocks have run out.

        The time goes to the phase that was seen at its beginning. In a phase that says nothing
        (`unknown`) the clock of the phase before goes on.
        """
        if self._since is not None and self._ticking is not None:
            passed = max(0.0, now - self._since)
            self.spent[self._ticking] = self.spent.get(self._ticking, 0.0) + passed
        self._since = now
        if phase != "unknown":
            self._ticking = clock_of(phase)
            if phase != "unreachable":
                self.spent["reach"] = 0.0
        return self.expired

    def begin_again(self) -> None:
        """Another attempt waits for its cluster; the time that the run has had is its own."""
        self.spent = {clock: spent for clock, spent in self.spent.items() if clock == "run"}
        self._since = self._ticking = None

    @property
    def expired(self) -> frozenset[Clock]:
        """Clocks that have run out."""
        return frozenset(
            clock for clock, limit in self.limits.items() if self.spent.get(clock, 0.0) > limit
        )
