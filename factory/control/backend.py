"""What the Pipes client asks of a place where runs go, and the one state that it answers with.

`local` implements it with a Ray cluster on this machine, `kube.backend` with a RayJob. Nothing here
knows how a cluster is made: a backend gives each run a cluster of its own, and the client (`pipes`)
decides what a state means for the run (`verdict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from factory.control.answers import Ended
from factory.control.clocks import Clock
from factory.control.logs import ByteSource
from factory.namespace import RunDirectory
from factory.spec import Launch, RunSpec

type Phase = Literal[
    "queued",
    "starting",
    "running",
    "stopping",
    "unreachable",
    "unknown",
    "succeeded",
    "failed",
    "evicted",
    "lost",
    "gone",
]

_ENDED = frozenset[Phase]({"succeeded", "failed", "evicted", "lost", "gone"})


@dataclass(frozen=True, kw_only=True)
class State:
    """Where a run is. Of an end it is the backend's word, not yet the verdict."""

    phase: Phase
    reason: str = ""
    """In words, for the run's page: why it waits, or what ended it."""
    advice: str = ""
    """What a person can do, where there is something."""
    evidence: tuple[str, ...] = ()
    """What an end is known by, one line for each; never what the run itself has printed."""
    exit_code: int | None = None
    """Of the driver, where it is known; negative for a signal."""

    @property
    def waits(self) -> bool:
        """Time in this state counts against the limits of queue and start, not of the run."""
        return self.phase in ("queued", "starting")

    @property
    def ended(self) -> bool:
        """Nothing more will happen by itself."""
        return self.phase in _ENDED

    @property
    def taken(self) -> Literal["evicted", "lost"] | None:
        """How the run's place was lost through no fault of its own, if it was."""
        return self.phase if self.phase in ("evicted", "lost") else None


class RunCluster(Protocol):
    """One run's own cluster, from the moment it is asked for until nothing of it is left."""

    @property
    def taken_up(self) -> bool:
        """Whether a process before this one has begun it: it goes on, whatever happens here."""
        ...

    def submit(self, environment: Mapping[str, str]) -> None:
        """Hand the driver to the cluster, which may still be starting."""
        ...

    @property
    def log(self) -> Path:
        """The file in the run's directory that holds the driver's output."""
        ...

    def poll(self) -> State:
        """Where the run is. Called a few times each second, so it must be cheap."""
        ...

    def read_log(self) -> ByteSource:
        """The driver's output, from its first byte."""
        ...

    def facts(self) -> Mapping[str, str]:
        """What a person wants to know about the cluster: its name, address, nodes."""
        ...

    def leave(self) -> None:
        """Let go of a cluster that goes on without this process, to be taken up by another."""
        ...

    def stop(self, grace_seconds: float) -> None:
        """End the run, gracefully at first, and the cluster, and prove that nothing is left.

        May be called at any moment, more than once, and after an earlier call was interrupted.

        Raises:
            RunFailed: something is still there; the message names it.
        """
        ...


class Backend(Protocol):
    """A place where runs go."""

    @property
    def root(self) -> Path | None:
        """The namespace as the driver sees it; none where it is as it is seen here."""
        ...

    def adopted(self, spec: RunSpec) -> Launch | None:
        """The attempt to go on with, where a process that is gone has left one.

        Raises:
            RunFailed: something of the run goes on that is not of this spec.
        """
        ...

    def next_attempt(self) -> int:
        """One more than the highest attempt on record."""
        ...

    def spent(self) -> dict[Clock, float]:
        """Seconds on the clocks of an attempt that another process has begun."""
        ...

    def history(self) -> list[Ended]:
        """The attempts that have ended so far, as far as they are on record."""
        ...

    def shown(self, attempt: int) -> Mapping[str, int]:
        """The lines that the run's page has of who followed the attempt before, each how often."""
        ...

    def start(self, launch: Launch, run_directory: RunDirectory) -> RunCluster:
        """Ask for the run's cluster, without waiting for it. Either it can be stopped or it raises.

        Raises:
            RunFailed: the cluster cannot be had; the message says why and what to do.
        """
        ...
