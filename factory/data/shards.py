"""Shards: the units of work of a step, planned from its input alone.

Which files are read together follows from their names and sizes, so every engine and every number
of workers does the same work, and a step that was cut off finds its finished shards again. What is
done with a shard is in the module of each step; doing it for all of them is in `phases`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

SHARD_BYTES = 32 * 2**20
"""Small files are read together up to so many bytes; a larger file is a shard of its own."""

SHARD_FILES = 2_000
"""And up to so many files."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Files that are read one after the other, by one worker."""

    number: int
    names: tuple[str, ...]
    size: int
    """Bytes of the files, to tell how much of the work is done."""

    limit: int | None = None
    """Rows to read at most."""


def plan(files: Iterable[tuple[str, int]]) -> list[Shard]:
    """Shards of these files, given by name and size. Their rows are in the order of the names."""
    shards: list[Shard] = []
    names: list[str] = []
    total = 0
    for name, size in sorted(files):
        if names and (total + size > SHARD_BYTES or len(names) >= SHARD_FILES):
            shards.append(Shard(len(shards), tuple(names), total))
            names, total = [], 0
        names.append(name)
        total += size
    if names:
        shards.append(Shard(len(shards), tuple(names), total))
    return shards


def one_each(files: Iterable[tuple[str, int]]) -> list[Shard]:
    """A shard for each file, in the order given: the files of a table are shards already."""
    return [Shard(number, (name,), size) for number, (name, size) in enumerate(files)]
