"""A member of an archive: its name, which has to be plain and the only one, and its bytes.

`archives` reads zip and tar files with it.
"""

import re
import tarfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, RawIOBase
from typing import IO

from factory.data.formats.compression import Guard
from factory.errors import BadFile

_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


_SURROGATE = re.compile("[\ud800-\udfff]")
"""Stands in a name for a byte that is no text."""


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    name: str
    offset: int
    """Where its bytes begin in the unpacked tar."""

    size: int
    stream: BufferedReader
    """To be read before the next member is asked for."""

    said: str = ""
    """What the archive says of it besides: who owned it, comments."""


@dataclass
class Names:
    """Refuses names that lead out of the archive, and those that come again."""

    archive: str
    seen: set[str] = field(default_factory=set[str])

    def checked(self, name: str, *, folder: bool) -> str:
        """The name of a member, without what means nothing.

        Raises:
            BadFile: it is none that a file can be unpacked to.
        """
        plain = name.removeprefix("./")
        plain = plain.removesuffix("/") if folder else plain
        parts = plain.replace("\\", "/").split("/")
        if plain.startswith(("/", "\\")) or ".." in parts or plain[1:2] == ":":
            raise self.refused(name, "has a name that leads out of the archive")
        if folder and plain in ("", "."):
            return ""
        if "" in parts or "." in parts or "\0" in plain:
            raise self.refused(name, "has no plain name")
        if not plain.isascii() and _SURROGATE.search(plain):
            raise self.refused(name, "has a name that is not UTF-8")
        if plain in self.seen:
            raise self.refused(name, "is there twice")
        self.seen.add(plain)
        return plain

    def refused(self, name: str, why: str) -> BadFile:
        """Why the archive is refused, for a member of it."""
        return BadFile(
            f"{self.archive}: its member {name!r} {why}. The archive is refused; have it packed "
            "anew from plain files."
        )


class Watched(RawIOBase):
    """A member's bytes, counted, with errors that say where."""

    def __init__(self, inner: IO[bytes], name: str, guard: Guard, packed: int) -> None:
        super().__init__()
        self._inner = inner
        self._name = name
        self._guard = guard
        self._packed = packed
        self._read = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "bytearray | memoryview", /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  any buffer
        """Fill what is asked for."""
        with damage(self._name, self._read):
            data = self._inner.read(len(buffer))
        self._read += len(data)
        self._guard.add(len(data), self._packed)
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def damage(name: str, position: int | None = None) -> Generator[None]:
    """Turn what the archive libraries raise into the error of a bad file."""
    try:
        yield
    except BadFile:
        raise
    except _DAMAGED as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        where = "" if position is None else f", unpacked byte {position:,}"
        raise BadFile(f"{name}{where}: damaged or cut archive: {reason}.") from None
