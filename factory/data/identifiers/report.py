"""What a scan found: counts, positions and whether it blocks, with the reasons; never a value.

A report may leave the drop zone. A file whose own name holds an identifier is called by its place
in the list of files, see `shown`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from factory.data.identifiers.kinds import SURROGATES, Kind

MAXIMUM_POSITIONS = 100_000
"""Positions that a report keeps; counts and rejected rows are complete."""


class Thresholds(BaseModel, frozen=True, extra="forbid"):
    """How much a delivery may hold of each kind before it is blocked."""

    direct: int = Field(
        default=0, ge=0, description="Findings of each direct kind that do not block."
    )
    allowed: Mapping[Kind, int] = Field(
        default_factory=dict[Kind, int],
        description="The same for single kinds, where another number was agreed.",
    )
    without_surrogates: int = Field(
        default=0,
        ge=0,
        description="Names, dates and ages over 89 that do not block a delivery whose statement "
        "says that no surrogates were used: there each of them is real.",
    )

    def limit(self, kind: Kind, *, surrogates: bool) -> int | None:
        """The most findings of a kind that do not block; none where it is only counted."""
        if kind in self.allowed:
            return self.allowed[kind]
        if kind.direct:
            return self.direct
        return self.without_surrogates if kind in SURROGATES and not surrogates else None


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where something was found."""

    file: str
    row: int | None
    """Counted from 1 in its file; none where a row is the whole file."""

    offset: int | None
    """First character in the row's text (or in the value of a DICOM element)."""

    kind: Kind
    direct: bool
    tag: str | None = None
    """The DICOM element."""


@dataclass
class ScanReport:
    """The sum of a scan."""

    surrogates: bool
    """What the statement says: names and dates were replaced by invented ones."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    counts: Counter[Kind] = field(default_factory=Counter[Kind])
    counted: Counter[Kind] = field(default_factory=Counter[Kind])
    """Those of `counts` that a threshold is compared with."""

    positions: list[Position] = field(default_factory=list[Position])
    positions_left_out: int = 0
    rejected: dict[tuple[str, int | None], None] = field(
        default_factory=dict[tuple[str, int | None], None]
    )
    """Rows with a direct identifier, by file and row; they stay in the drop zone."""

    files: int = 0
    rows: int = 0
    characters: int = 0

    def add(self, found: Position) -> None:
        """Count a finding and keep its position."""
        self.counts[found.kind] += 1
        if found.direct or found.kind in SURROGATES or found.kind in self.thresholds.allowed:
            self.counted[found.kind] += 1
        if found.direct:
            self.rejected[found.file, found.row] = None
        if len(self.positions) < MAXIMUM_POSITIONS:
            self.positions.append(found)
        else:
            self.positions_left_out += 1

    @property
    def why(self) -> list[str]:
        """Each reason to block, as a sentence."""
        reasons: list[str] = []
        for kind, count in sorted(self.counted.items()):
            limit = self.thresholds.limit(kind, surrogates=self.surrogates)
            if kind.direct and limit is None:
                limit = self.thresholds.direct
            if limit is not None and count > limit:
                where = next((place(one) for one in self.positions if one.kind is kind), "")
                reasons.append(
                    f"{count:,} x {kind} where {limit:,} may be, first in {where}".strip()
                )
        return reasons

    @property
    def blocked(self) -> bool:
        """Whether nothing of the delivery may be published."""
        return bool(self.why)

    def facts(self) -> dict[str, Any]:
        """What may go into a manifest or into Dagster."""
        return {
            "blocked": self.blocked,
            "why": self.why,
            "found": {str(kind): count for kind, count in sorted(self.counts.items())},
            "rows_with_direct_identifiers": len(self.rejected),
            "positions_left_out": self.positions_left_out,
            "surrogates": self.surrogates,
            "files": self.files,
            "rows": self.rows,
            "characters": self.characters,
        }


def shown(name: str, number: int) -> str:
    """A file's name for reports and errors, unless the name itself holds an identifier."""
    return f"file {number} (its name is withheld)" if in_name(name) or _odd(name) else name


def in_name(name: str) -> set[Kind]:
    """Direct identifiers in a file's name, also where underscores part its words."""
    from factory.data.identifiers.text import scan_text

    spaced = name.replace("_", " ").replace("/", " / ")
    return {one.kind for text in (name, spaced) for one in scan_text(text) if one.direct}


def _odd(name: str) -> bool:
    """Whether a name would not print as one line."""
    return not name.isprintable() or len(name) > 300


def place(one: Position) -> str:
    """A position in words."""
    parts = [one.file]
    parts += [f"row {one.row}"] if one.row is not None else []
    parts += [f"element {one.tag}"] if one.tag else []
    parts += [f"offset {one.offset}"] if one.offset is not None else []
    return ", ".join(parts)
