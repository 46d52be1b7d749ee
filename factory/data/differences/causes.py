"""Why two versions differ: what their manifests say differently."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from factory.namespace import Manifest, Version

ABSENT = "(absent)"

DECIDING = ("code", "limit", "partial")
"""Fields beside parameters and inputs that decide what a step makes."""

STATED = ("licenses", "columns", "checks", "rows", "facts")
"""Fields that say what came of it."""

NOT_SHOWN = frozenset({"statistics"})
"""Facts that are long tables of figures: the card of a version shows them."""


@dataclass(frozen=True)
class Cause:
    """One field that differs."""

    name: str
    before: Any
    after: Any
    decides: bool
    """Whether it decides what the step makes, or says what came of it."""


def causes(before: Version, after: Version) -> list[Cause]:
    """What the manifests say differently: what decides first."""
    one, other = before.manifest, after.manifest
    found = [*_fields(one, other, DECIDING, decides=True)]
    found += _mapping("parameter", one.parameters, other.parameters, decides=True)
    found += _mapping("input", one.inputs, other.inputs, decides=True)
    if not found and one.input_id != other.input_id:
        found.append(Cause("what the source held", one.input_id, other.input_id, decides=True))
    found += _fields(one, other, STATED, decides=False)
    return found


def _fields(
    one: Manifest, other: Manifest, names: tuple[str, ...], *, decides: bool
) -> Iterator[Cause]:
    for name in names:
        before, after = getattr(one, name), getattr(other, name)
        yield from _differing(name, before, after, decides=decides)


def _mapping(
    what: str, one: Mapping[str, Any], other: Mapping[str, Any], *, decides: bool
) -> Iterator[Cause]:
    for name in sorted(one.keys() | other.keys()):
        if name not in NOT_SHOWN:
            before, after = one.get(name, ABSENT), other.get(name, ABSENT)
            yield from _differing(f"{what} {name}", before, after, decides=decides)


def _differing(name: str, before: Any, after: Any, *, decides: bool) -> Iterator[Cause]:
    """One field, or each entry of it that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        one: dict[str, Any] = before
        other: dict[str, Any] = after
        yield from _mapping(name, one, other, decides=decides)
    elif before != after:
        yield Cause(name, before, after, decides)
