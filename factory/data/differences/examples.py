"""Examples of what differs: the first few of each kind, with what of a sample changed.

They are texts of rows, so only whoever may read the tree gets them: they are printed, and go into
no log, no metadata and no file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

ABSENT = "(absent)"
AROUND = 40
"""Characters shown on each side of the first place that differs."""

FIELDS_SHOWN = 5


@dataclass(frozen=True)
class Change:
    """One field of a sample, where it begins to differ."""

    field: str
    before: str
    after: str


@dataclass(frozen=True)
class Row:
    """One sample, or one file."""

    id: str
    text: str
    """How it begins."""

    changes: list[Change] = field(default_factory=list[Change])
    more: int = 0
    """Fields that differ as well and are not listed."""


@dataclass
class Examples:
    """The first few of each kind."""

    added: list[Row] = field(default_factory=list[Row])
    removed: list[Row] = field(default_factory=list[Row])
    changed: list[Row] = field(default_factory=list[Row])
    moved: list[Row] = field(default_factory=list[Row])


def shown(row: Mapping[str, Any]) -> Row:
    """A sample by its id and the longest text near its beginning."""
    common = ("id", "group", "kind", "source", "license", "meta")
    texts = (
        text
        for name, text in _flat(row)
        if name.partition(".")[0] not in common and len(text) > AROUND // 4
    )
    return Row(plain(str(row.get("id", ""))), _cut(next(texts, ""), 0))


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Row:
    """A sample that changed, field by field."""
    one, other = dict(_flat(before)), dict(_flat(after))
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    changes = [_change(name, one.get(name), other.get(name)) for name in names[:FIELDS_SHOWN]]
    more = max(0, len(names) - FIELDS_SHOWN)
    return Row(plain(str(after.get("id", ""))), "", changes, more)


def moved(row: Mapping[str, Any], before: str, after: str) -> Row:
    """A sample that is in another split now."""
    return Row(plain(str(row.get("id", ""))), "", [Change("split", before, after)])


def plain(text: str) -> str:
    """Text that cannot move the cursor or colour what follows: rows are not ours."""
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _change(name: str, before: str | None, after: str | None) -> Change:
    at = 0 if before is None or after is None else _first_difference(before, after)
    return Change(
        plain(name),
        ABSENT if before is None else _cut(before, at),
        ABSENT if after is None else _cut(after, at),
    )


def _first_difference(one: str, other: str) -> int:
    both = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(both) if a != b), min(len(one), len(other)))


def _cut(text: str, at: int) -> str:
    start, end = max(0, at - AROUND), at + AROUND
    left = "..." if start else ""
    right = "..." if end < len(text) else ""
    return f"{left}{plain(text[start:end])}{right}"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a sample by its path: `document.sections[2].text`."""
    if isinstance(value, dict):
        entries: dict[str, Any] = value
        for key, inner in entries.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        members: list[Any] = value
        for number, inner in enumerate(members):
            yield from _flat(inner, f"{name}[{number}]")
    elif value is not None:
        yield name, str(value)
