"""What the Pipes client asks of a place where runs go, and the one state that it answers with.

`local` implements it with a Ray cluster on this machine. Nothing here knows how a cluster is made:
a backend gives each run a cluster of its own, and the client (`pipes`) decides what a state means
for the run (`verdict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from factory.control.logs import ByteSource
from factory.namespace import RunDirectory
from factory.spec import Launch

type Phase = Literal["queued", "starting", "running", "succeeded", "failed"]


@dataclass(frozen=True, kw_only=True)
class State:
    """Where a run is. `succeeded` and `failed` are the backend's word, not yet the verdict."""

    phase: Phase
    reason: str = ""
    """In words, for the run's page: why it waits, or what ended it."""
    exit_code: int | None = None
    """Of the driver, where it is known; negative for a signal."""

    @property
    def waits(self) -> bool:
        """Time in this state counts against the queue limit, not against the run limit."""
        return self.phase in ("queued", "starting")

    @property
    def ended(self) -> bool:
        """Nothing more will happen by itself."""
        return self.phase in ("succeeded", "failed")


class RunCluster(Protocol):
    """One run's own cluster, from the moment it is asked for until nothing of it is left."""

    def submit(self, environment: Mapping[str, str]) -> None:
        """Hand the driver to the cluster, which may still be starting."""
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

    def stop(self, grace_seconds: float) -> None:
        """End the run, gracefully at first, and the cluster, and prove that nothing is left.

        May be called at any moment, more than once, and after an earlier call was interrupted.

        Raises:
            RunFailed: something is still there; the message names it.
        """
        ...


class Backend(Protocol):
    """A place where runs go."""

    def start(self, launch: Launch, run_directory: RunDirectory) -> RunCluster:
        """Ask for the run's cluster, without waiting for it. Either it can be stopped or it raises.

        Raises:
            RunFailed: the cluster cannot be had; the message says why and what to do.
        """
        ...
