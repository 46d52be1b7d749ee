"""A file being read: its name, its bytes, and what the formats need besides."""

from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

from factory.data.formats.limits import LARGEST_FILE
from factory.data.formats.notes import Notes
from factory.data.pattern import Pattern, Rows
from factory.data.row import Beside, Row
from factory.errors import BadFile

BUFFER = 2**18


@dataclass(frozen=True)
class Opened:
    """A file, or a member of an archive, with any compression taken off."""

    name: str
    """As rows say it: `data.zip!folder/a.csv`."""

    stream: BufferedReader
    pattern: Pattern
    notes: Notes
    opener: Beside
    max_pixels: int | None
    path: Path | None = None
    """Where the bytes lie as they are; none in an archive, or compressed."""

    @property
    def rows(self) -> Rows:
        """What was declared."""
        return self.pattern.rows

    @property
    def inner(self) -> str:
        """The name that says what the file is: inside of its archive, if it lies in one."""
        return self.name.rpartition("!")[2]

    def row(self, position: int | None, **contents: Any) -> Row:
        """A row of this file, with what `Row` calls its contents."""
        return Row(self.name, position, max_pixels=self.max_pixels, opener=self.opener, **contents)

    def bad(self, position: int | None, reason: str) -> Row:
        """A row that is rejected whatever `clean` does."""
        return Row(self.name, position, bad=reason)

    def whole(self) -> bytes:
        """All its bytes.

        Raises:
            BadFile: they are too many to be held.
        """
        data = self.stream.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise BadFile(
                f"{self.name}: has more than {LARGEST_FILE:,} bytes, and a row is the whole file. "
                "Ask for parts of it, or for smaller files."
            )
        return data


def opened(path: Path) -> BufferedReader:
    """A file as it lies there."""
    return BufferedReader(FileIO(path), BUFFER)
