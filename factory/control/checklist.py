"""Lines of `factory cluster check`: what was looked at, what was found, and what to do about it.

What a cluster of each kind is asked is in `check_local` and `kube.checkup`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

type State = Literal["ok", "note", "failed"]
"""A note is worth knowing, and runs go on without; what failed keeps them from running."""


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    state: State
    found: str
    action: str = ""
    """What to do. Every line that failed says so."""


def ok(what: str, found: str) -> Line:
    """As it should be."""
    return Line(what, "ok", found)


def note(what: str, found: str, action: str = "") -> Line:
    """Something to know."""
    return Line(what, "note", found, action)


def failed(what: str, found: str, action: str) -> Line:
    """Runs cannot go there before somebody acts."""
    return Line(what, "failed", found, action)


def any_failed(lines: Iterable[Line]) -> bool:
    """Whether a run cannot go there."""
    return any(line.state == "failed" for line in lines)
