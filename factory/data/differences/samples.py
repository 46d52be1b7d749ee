"""Samples of two versions compared: counts from hashes, then the few that are shown read again."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from factory.data.differences import Counts, examples
from factory.data.differences.examples import Examples
from factory.data.differences.holdings import has_samples as _has
from factory.data.differences.holdings import held
from factory.data.differences.matching import Matched, Prints, matched
from factory.namespace import Version


def has_samples(before: Version, after: Version) -> bool:
    """Whether both versions hold samples."""
    return _has(before) and _has(after)


def compared(before: Version, after: Version, number: int) -> tuple[Counts, Examples]:
    """Compare all samples; where the content ids are equal, none has to be read."""
    rows = (before.manifest.rows or 0, after.manifest.rows or 0)
    if before.manifest.content_id == after.manifest.content_id:
        return Counts("rows", *rows), Examples()
    names: list[str] = []
    one, other = Prints.of(held(before), names), Prints.of(held(after), names)
    found = matched(one, other)
    moves = Counter(
        f"{names[one.places[i]]} -> {names[other.places[j]]}" for i, j in found.moved.tolist()
    )
    counts = Counts(
        "rows",
        len(one),
        len(other),
        added=len(found.added),
        removed=len(found.removed),
        changed=len(found.changed),
        moved=dict(moves.most_common()),
        reordered=not any(map(len, (found.added, found.removed, found.changed, found.moved))),
    )
    return counts, _examples(before, after, found, number)


def _examples(before: Version, after: Version, found: Matched, number: int) -> Examples:
    changed = found.changed[:number].tolist()
    moved = found.moved[:number].tolist()
    added = found.added[:number].tolist()
    removed = found.removed[:number].tolist()
    old = _at(before, [*removed, *(i for i, _ in changed + moved)])
    new = _at(after, [*added, *(j for _, j in changed + moved)])
    return Examples(
        added=[examples.shown(new[j][1]) for j in added],
        removed=[examples.shown(old[i][1]) for i in removed],
        changed=[examples.changed(_whole(old[i]), _whole(new[j])) for i, j in changed],
        moved=[examples.moved(new[j][1], old[i][0], new[j][0]) for i, j in moved],
    )


def _whole(one: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    place, row = one
    return {**row, "split": place} if place else row


def _at(version: Version, positions: Iterable[int]) -> dict[int, tuple[str, dict[str, Any]]]:
    """The samples at these positions; nothing after the last of them is read."""
    wanted = set(positions)
    end = max(wanted, default=-1) + 1
    numbered: Iterator[tuple[int, tuple[str, dict[str, Any]]]] = enumerate(
        islice(held(version), end)
    )
    return {number: one for number, one in numbered if number in wanted}
