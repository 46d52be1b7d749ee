"""Checks that a declaration can demand, and what a check is.

A check is a plain function of a version's directory that returns whether it passed and what it
saw. The checks that every dataset gets are in `free_checks`; `run_checks` there runs and records.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factory.data.declared import is_number, is_whole
from factory.errors import DeclarationError

if TYPE_CHECKING:
    from factory.namespace import Manifest

FREE_CHECK_NAMES = (
    "files_intact",
    "schema",
    "ids_unique",
    "has_rows",
    "rows_accounted",
    "images_stored",
    "kept_or_removed",
    "removed_for_kept",
    "rows_balanced",
    "disjoint",
    "nothing_lost",
    "shares",
    "index_opens",
    "count_equals_split",
    "entries_equal_split",
)

_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a check passed, in one line what it saw, and the figures behind that."""

    passed: bool
    summary: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Check:
    """A named demand on the version of a step."""

    name: str
    function: Callable[[Path], CheckResult]
    blocking: bool = True
    """Whether a version that fails it may become current: one that only warns says False."""

    description: str = ""
    step: str = "clean"
    """`raw`, `clean`, `deduplicated`, `split` or `energon`; declared checks look at `clean`."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"Check name {self.name!r} cannot be used; write letters, digits and '_'."
            )


def rows(low: int, high: int, *, blocking: bool = True) -> Check:
    """Between `low` and `high` samples were kept, both included."""
    if not (is_whole(low) and is_whole(high) and 0 <= low <= high):
        raise DeclarationError(
            f"checks.rows({low!r}, {high!r}): the bounds must be whole numbers, 0 <= low <= high."
        )
    return Check(
        "rows", _Rows(low, high), blocking, f"Between {low:,} and {high:,} samples were kept."
    )


def rejected(reason: str, *, at_most: float, blocking: bool = True) -> Check:
    """At most that share of the rows read was rejected for that reason."""
    if not (is_number(at_most) and 0 <= at_most <= 1):
        raise DeclarationError(
            f"checks.rejected({reason!r}, at_most={at_most!r}): a share lies between 0 and 1."
        )
    if not (isinstance(reason, str) and reason.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DeclarationError(
            f"checks.rejected({reason!r}): write the reason for which `clean` rejects rows, a text."
        )
    slug = re.sub(r"[^a-z0-9]+", "_", reason.lower()).strip("_")[:80]
    return Check(
        f"rejected_{slug}",
        _Rejected(reason, at_most),
        blocking,
        f"At most {at_most:.1%} of the rows were rejected because of: {reason}.",
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    low: int
    high: int

    def __call__(self, directory: Path) -> CheckResult:
        from factory.data.layout import manifest_of

        manifest = manifest_of(directory)
        count = manifest.rows or 0
        facts = {"rows": count, "low": self.low, "high": self.high}
        if (part := _part(manifest)) and count <= self.high:
            return CheckResult(True, f"{count:,} rows; not judged: {part}", facts)
        passed = self.low <= count <= self.high
        relation = "within" if passed else "outside"
        return CheckResult(
            passed, f"{count:,} rows, {relation} {self.low:,} to {self.high:,}", facts
        )


@dataclass(frozen=True, slots=True)
class _Rejected:
    reason: str
    at_most: float

    def __call__(self, directory: Path) -> CheckResult:
        """Count in the table: the manifest counts the most common reasons only."""
        from factory.data import layout, table

        manifest = layout.manifest_of(directory)
        read = int(layout.facts_of(directory)["rows_read"])
        count = table.count(directory / layout.REJECTED, "reason", self.reason)
        share = count / read if read else 0.0
        facts = {"rejected": count, "read": read, "share": share, "at_most": self.at_most}
        if part := _part(manifest):
            return CheckResult(True, f"{share:.1%}; not judged: {part}", facts)
        return CheckResult(
            share <= self.at_most,
            f"{count:,} of {read:,} rows ({share:.1%}) rejected for {self.reason!r}, "
            f"at most {self.at_most:.1%} allowed",
            facts,
        )


def _part(manifest: "Manifest") -> str:
    """Of what part of the source the version is made; empty where it is made of all of it."""
    if manifest.limit is not None:
        return f"limited to the first {manifest.limit:,} rows"
    return "PARTIAL mirror" if manifest.partial else ""
