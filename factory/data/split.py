"""Splitting: which split a group of samples belongs to, by a hash of the group and nothing else.

A group keeps its split when other samples come and go, in every dataset that has it. Only where
the hash leaves a declared split empty, groups are moved, because nothing can be prepared from
none; that is recorded.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from factory.errors import StepError


@dataclass(frozen=True, slots=True)
class Assignment:
    """The split of every group, and how many groups were moved into an empty one."""

    split_of: Mapping[str, str]
    filled: Mapping[str, int]
    moved: Mapping[str, str]
    """The groups that are not in the split that their hash gives, with the one they are in."""


def position(group: str) -> int:
    """Where a group lies between 0 and 2**256."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest())


def assign(groups: Iterable[str], shares: Mapping[str, float]) -> Assignment:
    """Give every group its split.

    Raises:
        StepError: there are fewer groups than splits.
    """
    places = {group: position(group) for group in groups}
    if len(places) < len(shares):
        raise StepError(
            f"{len(places)} groups cannot fill the {len(shares)} splits {', '.join(shares)}. "
            "Declare fewer splits, or find out where the samples went: each split needs a group."
        )
    by_hash = {group: _split(place, shares) for group, place in places.items()}
    split_of = dict(by_hash)
    filled = _fill(places, split_of, shares)
    moved = {group: name for group, name in split_of.items() if name != by_hash[group]}
    return Assignment(split_of, filled, moved)


def split_of(group: str, shares: Mapping[str, float]) -> str:
    """The split that the hash of a group gives."""
    return _split(position(group), shares)


def _split(place: int, shares: Mapping[str, float]) -> str:
    """The split whose part of the range holds this place; the first shares come first."""
    reached = 0.0
    fraction = place / 2**256
    name = ""
    for name, share in shares.items():
        reached += share
        if fraction < reached:
            return name
    return name  # shares that add up to a hair less than 1


def _fill(
    places: Mapping[str, int], split_of: dict[str, str], shares: Mapping[str, float]
) -> dict[str, int]:
    """Give empty splits the groups of lowest hash, from splits that keep at least one."""
    counts = dict.fromkeys(shares, 0)
    for name in split_of.values():
        counts[name] += 1
    empty = [name for name in shares if not counts[name]]
    lowest = sorted(places, key=lambda group: (places[group], group)) if empty else []
    filled: dict[str, int] = {}
    for later, name in zip(reversed(range(len(empty))), empty, strict=True):
        spare = sum(counts[one] - 1 for one in shares if one not in filled and counts[one])
        wanted = min(max(1, round(shares[name] * len(places))), spare - later)
        for group in lowest:
            giver = split_of[group]
            if counts[name] < wanted and counts[giver] > 1 and giver not in empty:
                counts[giver] -= 1
                counts[name] += 1
                split_of[group] = name
        filled[name] = wanted
    return filled
