"""Samples of two versions matched by id, through hashes of ids and contents in arrays.

An id that is there more than once on a side is matched content by content, then one by one.
"""

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from factory.data.differences.holdings import Held
from factory.data.sample import canonical

type Hashes = npt.NDArray[np.uint64]
type Positions = npt.NDArray[np.int64]

_BYTES = 16


def id_hash(row: dict[str, Any]) -> bytes:
    """The hash by which a sample is found again."""
    return hashlib.blake2b(str(row.get("id", "")).encode(), digest_size=_BYTES).digest()


@dataclass
class Prints:
    """The samples of one version, as hashes, in their order."""

    ids: bytearray = field(default_factory=bytearray)
    contents: bytearray = field(default_factory=bytearray)
    places: array[int] = field(default_factory=lambda: array("H"))
    names: list[str] = field(default_factory=list[str])

    def __len__(self) -> int:
        return len(self.places)

    @classmethod
    def of(cls, samples: Iterable[Held], names: list[str]) -> "Prints":
        """Read all samples; `names` gives the numbers of splits, and is extended."""
        made = cls(names=names)
        numbers = {name: number for number, name in enumerate(names)}
        for place, row in samples:
            if place not in numbers:
                numbers[place] = len(names)
                names.append(place)
            made.ids += id_hash(row)
            made.contents += hashlib.blake2b(canonical(row), digest_size=_BYTES).digest()
            made.places.append(numbers[place])
        return made


@dataclass(frozen=True)
class Matched:
    """Positions of what differs: of one sample, or of a pair before and after."""

    added: Positions
    removed: Positions
    changed: Positions
    moved: Positions


def matched(before: Prints, after: Prints) -> Matched:
    """Compare two versions, sample by sample."""
    ids = _joined(before.ids, after.ids)
    contents = _joined(before.contents, after.contents)
    places = np.concatenate([np.asarray(before.places), np.asarray(after.places)])
    split = len(before)
    order = np.lexsort((ids[:, 1], ids[:, 0]))
    alone, pairs, repeated = _groups(ids, order, split)
    for group in repeated:
        ones, twos = _paired(group, contents, split)
        alone = np.concatenate([alone, np.array(ones, np.int64)])
        pairs = np.concatenate([pairs, np.array(twos, np.int64).reshape(-1, 2)])
    same = np.all(contents[pairs[:, 0]] == contents[pairs[:, 1]], axis=1)
    moved = same & (places[pairs[:, 0]] != places[pairs[:, 1]])
    offset = np.array([0, split])
    return Matched(
        added=np.sort(alone[alone >= split]) - split,
        removed=np.sort(alone[alone < split]),
        changed=_in_order(pairs[~same] - offset),
        moved=_in_order(pairs[moved] - offset),
    )


def _joined(before: bytearray, after: bytearray) -> Hashes:
    return np.frombuffer(bytes(before) + bytes(after), np.uint64).reshape(-1, 2)


def _groups(
    ids: Hashes, order: Positions, split: int
) -> tuple[Positions, Positions, list[list[int]]]:
    """Samples whose id is there once, pairs of both versions, and ids that are repeated."""
    new = np.ones(len(order), bool)
    new[1:] = np.any(ids[order[1:]] != ids[order[:-1]], axis=1)
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(order)))
    twos = starts[sizes == 2]
    pairs = np.sort(np.stack([order[twos], order[twos + 1]], axis=1), axis=1)
    across = (pairs[:, 0] < split) & (pairs[:, 1] >= split)
    repeated = [pair.tolist() for pair in pairs[~across]]
    many = sizes > 2
    repeated += [
        order[start : start + size].tolist()
        for start, size in zip(starts[many], sizes[many], strict=True)
    ]
    return order[starts[sizes == 1]], pairs[across], repeated


def _paired(
    group: list[int], contents: Hashes, split: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Samples of one id: those of equal content belong together, then those that are left."""
    befores: dict[tuple[int, ...], list[int]] = {}
    for position in sorted(one for one in group if one < split):
        befores.setdefault(tuple(contents[position].tolist()), []).append(position)
    pairs: list[tuple[int, int]] = []
    afters: list[int] = []
    for position in sorted(one for one in group if one >= split):
        equal = befores.get(tuple(contents[position].tolist()))
        if equal:
            pairs.append((equal.pop(0), position))
        else:
            afters.append(position)
    left = sorted(one for rest in befores.values() for one in rest)
    pairs += zip(left, afters, strict=False)
    shorter = min(len(left), len(afters))
    return left[shorter:] + afters[shorter:], pairs


def _in_order(pairs: Positions) -> Positions:
    return pairs[np.argsort(pairs[:, 1], kind="stable")]
