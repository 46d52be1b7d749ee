"""What the sources of files have in common: a row pattern, and checks of what a declaration says.

The sources themselves are in `sources` and `stores`.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from factory.data.pattern import Pattern, Rows
from factory.errors import DeclarationError
from factory.keys import Key

SHA256 = re.compile(r"[0-9a-f]{64}")
DIGITS = "the 64 hexadecimal digits of its sha256"


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """What all sources of files have: which of them hold rows."""

    rows: str | Rows
    inputs: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        Pattern.parse(self.rows)
        self._check()

    def _check(self) -> None:
        """Refuse what cannot be used; each source has its own demands."""

    def named(self) -> str:
        """The patterns of the files that are kept, as a manifest has them."""
        return " ".join(Pattern.parse(self.rows).fetched())


def refuse_outside(path: str, folder: str, what: str) -> None:
    """Refuse a path that leaves the folder."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise DeclarationError(
            f"{what} {path!r} must be a path below {folder}: not absolute, not empty, no '..'."
        )


def refuse_classification(classification: str) -> None:
    """Refuse what is neither public nor private."""
    if classification not in ("public", "private"):
        raise DeclarationError(
            f"classification is {classification!r}; write 'public' or 'private'."
        )


def require(pattern: re.Pattern[str], what: str, value: str, wanted: str) -> None:
    """Refuse a value that is not of that form."""
    if not pattern.fullmatch(value):
        raise DeclarationError(f"{what} {value!r} cannot be used; write {wanted}.")
