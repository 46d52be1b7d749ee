"""Did a run succeed? A pure function of how its driver ended and what it said.

Success needs both words: the backend's that the driver ended well, and the driver's own closing
message without an exception. The states come from `backend`, the closing message from `messages`.
"""

import signal
from collections.abc import Sequence
from pathlib import Path

from dagster_pipes import PipesException

from factory.control.backend import State
from factory.errors import RunFailed
from factory.keys import Classification

REFUSED = 3
"""Exit code of a driver that refuses its launch before anything starts."""

SUPERSEDED = 4
"""Exit code of a driver whose run another driver holds."""

PREEMPTED = 75
"""Exit code of a driver that was told to stop and ended in order: resume me."""

PREEMPTED_WORDS = f"its driver was told to stop, and ended in order (exit code {PREEMPTED})"


_CLOSING_DECIDES = frozenset({"succeeded", "gone", "evicted", "lost"})
"""A place may be taken between a driver's last word and its cluster's."""


def judge(
    state: State,
    *,
    closed: bool,
    exception: PipesException | None,
    tail: Sequence[str],
    log: Path,
    classification: Classification,
) -> None:
    """Return if the run succeeded. Of a run whose cluster was taken away, its own word decides.

    Raises:
        RunFailed: it did not. The message begins with the exception that the driver closed with,
            where there is one, and ends with the last lines of its log. Of a private run neither is
            repeated, because either may hold a row: the message says where the log is.
    """
    if state.phase in _CLOSING_DECIDES and closed and exception is None:
        return
    private = classification == "private"
    parts: list[str] = []
    if exception is not None:
        parts.append(_name(exception) if private else _told(exception))
    parts.append(_ending(state, closed=closed, told=exception is not None))
    if state.advice:
        parts.append(f"{state.advice}.")
    parts += state.evidence
    if private:
        parts.append(f"The run is private, so what it printed is only in {log}.")
    elif tail:
        parts.append(f"The last lines of {log}:\n" + "\n".join(f"  {line}" for line in tail))
    else:
        parts.append(f"It printed nothing to {log}.")
    raise RunFailed("\n".join(parts))


_MEANINGS = {
    REFUSED: ": it refused the launch before anything started",
    SUPERSEDED: ": another driver holds the run, and this one may not write into it",
    PREEMPTED: ": it was told to stop, and the run can go on from its last checkpoint",
}


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = " (by a person, or for want of memory)" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"
    return f"ended with exit code {code}"


def _ending(state: State, *, closed: bool, told: bool) -> str:
    if state.phase == "succeeded" and not closed:
        return (
            "The driver ended with exit code 0 but never closed its messages, so nothing says that "
            "the work was done. The run counts as failed."
        )
    how = state.reason or (
        f"The driver {describe_exit(state.exit_code)}"
        if state.exit_code is not None
        else "It failed"
    )
    if state.exit_code is not None:
        how += _MEANINGS.get(state.exit_code, "")
    if closed and not told:
        how += ", although it had closed its messages as if all were well"
    elif not closed:
        how += " before it closed its messages"
    return f"{how}."


def _name(exception: PipesException) -> str:
    return f"{exception.get('name') or 'An exception'} was raised in the driver."


def _told(exception: PipesException) -> str:
    return (exception.get("message") or _name(exception)).strip()
