"""Waiting: for what the ranks give back, hearing what happens meanwhile.

The first rank that fails ends the wait: the others would only run into their time-outs. A driver
that is told to stop leaves the ranks time to save, where they can.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from factory.errors import RunFailed, SpecError
from factory.training.workers import GRACE_SECONDS, Failure

POLL_SECONDS = 0.25
SAVING_SHARE = 0.9
"""Of the time between the word to stop and the kill: the rest is for closing."""


class Ended(BaseException):
    """The driver was told to stop, and has stopped."""


class Waiting:
    """Waits for Ray's references. `meanwhile` is called a few times a second."""

    def __init__(self, meanwhile: Callable[[], None], told: Callable[[], bool]) -> None:
        self._meanwhile = meanwhile
        self._told = told

    def all(
        self,
        references: Sequence[Any],
        *,
        stop: Callable[[], None] | None = None,
        grace_seconds: float = 0.0,
    ) -> list[Any]:
        """Every result, in order. `stop` asks the ranks to save and come back; they get the grace.

        Raises:
            RunFailed: a rank failed; the message is about the first one that did.
            SpecError: a rank refuses the launch.
            Ended: the driver was told to stop, and the ranks had nothing to save, or no time.
        """
        import ray

        waiting = list(references)
        failures: list[Failure] = []
        give_up = float("inf")
        until: float | None = None
        while waiting and time.monotonic() < give_up:
            ready, waiting = ray.wait(waiting, timeout=POLL_SECONDS)
            self._meanwhile()
            if self._told():
                until = self._stopping(until, stop, grace_seconds)
            for reference in ready:
                if (failure := _failure(reference, references.index(reference))) is not None:
                    failures.append(failure)
                    give_up = min(give_up, time.monotonic() + GRACE_SECONDS)
        if failures:
            raise _explained(failures)
        return ray.get(list(references))

    def _stopping(
        self, until: float | None, stop: Callable[[], None] | None, grace_seconds: float
    ) -> float:
        """When the ranks' time is over; asks them the first time."""
        if stop is None:
            raise Ended("It was told to stop before training had begun; there was nothing to save.")
        if until is None:
            stop()
            return time.monotonic() + SAVING_SHARE * grace_seconds
        if time.monotonic() > until:
            raise Ended(
                f"It was told to stop, and the ranks had not saved within {SAVING_SHARE:.0%} of "
                f"{grace_seconds:g} s (`grace_seconds` of the cluster), so what was trained since "
                "the last complete checkpoint is lost."
            )
        return until


def _failure(reference: Any, rank: int) -> Failure | None:
    import ray
    from ray.exceptions import RayError

    try:
        result = ray.get(reference)
    except RayError as error:
        summary = str(error).strip().splitlines()[0]
        return Failure(rank=rank, at=0.0, refused=False, summary=summary, details=str(error))
    return result if isinstance(result, Failure) else None


def _explained(failures: Sequence[Failure]) -> Exception:
    """The first failure with its traceback; the others, which follow from it, in a line each."""
    first, *others = sorted(failures, key=lambda failure: failure.at)
    if first.refused:
        return SpecError(first.summary)
    died = "its process died" if not first.at else first.summary
    lines = [f"Rank {first.rank} failed first: {died}", first.details.rstrip()]
    lines += [f"Then rank {other.rank}: {other.summary}" for other in others]
    return RunFailed("\n".join(lines))
