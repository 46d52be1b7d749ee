"""Which chunks of messages lie in a folder that pods may fill with whatever they like.

`messages` reads them. Only names that `chunk_name` gives count, and a listing is never whole in
memory.
"""

import heapq
import os
import re
from collections.abc import Iterator
from pathlib import Path

from factory.reports import chunk_name

LISTED_AT_ONCE = 1_000

_NUMBER = re.compile(r"([0-9]{6,18})\.jsonl")


def is_there(directory: Path, number: int) -> bool:
    """Whether the folder lists that chunk, whatever lies there."""
    return number in _numbers(directory)


def numbers_after(directory: Path, number: int) -> list[int]:
    """The next numbers beyond that one, in order, and not more than a thousand."""
    later = (one for one in _numbers(directory) if one > number)
    return heapq.nsmallest(LISTED_AT_ONCE, later)


def _numbers(directory: Path) -> Iterator[int]:
    """None where there is no such folder.

    Raises:
        OSError: it cannot be listed now.
    """
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    with entries:
        for entry in entries:
            found = _NUMBER.fullmatch(entry.name)
            if found is not None and chunk_name(int(found[1])) == entry.name:
                yield int(found[1])
