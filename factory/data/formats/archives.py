"""Archives: the members of zip and tar files as streams, in the order of the archive.

Nothing is unpacked to disk. An archive is refused as a whole when a member's name leads out of it,
when a member is a link, a device or encrypted, when two have the same name, and when it unpacks to
far more than it should. A cut tar ends with an error, also where it is cut between two members.
"""

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, cast

from factory.data.formats.compression import Guard, unpacked
from factory.data.formats.errorpage import refuse_page
from factory.data.formats.opened import BUFFER, opened
from factory.data.pattern import stem
from factory.errors import BadFile

LONGEST_HEADER = 2**20
"""Bytes of the long names and attributes that a tar file gives a member."""

_TAR_OF = {"tgz": "gz", "tbz2": "bz2", "txz": "xz"}

_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)

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


def is_zip(name: str) -> bool:
    """Whether an archive is a zip, whose members can be opened in any order."""
    return stem(name)[0].lower().endswith(".zip")


def members(path: Path, name: str, max_ratio: float) -> Generator[Member]:
    """Every file of an archive.

    Raises:
        BadFile: the archive is damaged or refused.
    """
    if is_zip(name):
        yield from _zip(path, name, max_ratio)
    else:
        yield from _tar(path, name, max_ratio)


def comments(path: Path, name: str) -> list[str]:
    """What a zip says beside its members.

    Raises:
        BadFile: it is damaged.
    """
    if not is_zip(name):
        return []
    with zip_archive(path, name) as archive:
        found = [archive.comment, *(info.comment for info in archive.infolist())]
    return [one.decode(errors="replace") for one in found if one]


@dataclass
class _Names:
    """Refuses names that lead out of the archive, and those that come again."""

    archive: str
    seen: set[str] = field(default_factory=set[str])

    def checked(self, name: str) -> str:
        plain = name.removeprefix("./")
        parts = plain.replace("\\", "/").split("/")
        if plain.startswith(("/", "\\")) or ".." in parts or plain[1:2] == ":":
            raise self.refused(name, "has a name that leads out of the archive")
        if plain in self.seen:
            raise self.refused(name, "is there twice")
        self.seen.add(plain)
        return plain

    def refused(self, name: str, why: str) -> BadFile:
        return BadFile(
            f"{self.archive}: its member {name!r} {why}. The archive is refused; have it packed "
            "anew from plain files."
        )


class _Watched(RawIOBase):
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


def _zip(path: Path, name: str, max_ratio: float) -> Generator[Member]:
    packed = path.stat().st_size
    guard = Guard(name, max_ratio)
    with zip_archive(path, name) as archive:
        for plain, info in zip_names(archive, name).items():
            full = f"{name}!{plain}"
            with damage(full):
                inner = archive.open(info)
            watched = _Watched(inner, full, guard, packed)
            yield Member(plain, 0, info.file_size, BufferedReader(watched, BUFFER))


@contextmanager
def zip_archive(path: Path, name: str) -> Generator[zipfile.ZipFile]:
    """An open zip.

    Raises:
        BadFile: it is none.
    """
    with opened(path) as file:
        refuse_page(file, name, "a zip archive")
        with damage(name):
            archive = zipfile.ZipFile(file)
        with archive:
            yield archive


def zip_names(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by their names.

    Raises:
        BadFile: the archive is refused.
    """
    names = _Names(name)
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        plain = names.checked(info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir():
            continue
        if kind not in (0, stat.S_IFREG):
            raise names.refused(info.filename, "is a link or no file")
        if info.flag_bits & 1:
            raise names.refused(info.filename, "is encrypted")
        found[plain] = info
    return found


def _tar(path: Path, name: str, max_ratio: float) -> Generator[Member]:
    with tar_stream(path, name, max_ratio) as stream:
        yield from _tar_members(stream, name, path.stat().st_size, max_ratio)


@contextmanager
def tar_stream(path: Path, name: str, max_ratio: float) -> Generator[BufferedReader]:
    """The bytes of a tar, with any compression taken off."""
    suffix = stem(name)[1] or _TAR_OF.get(name.rpartition(".")[2].lower())
    with opened(path) as file:
        if suffix is None:
            refuse_page(file, name, "a tar archive")
            yield file
        else:
            with unpacked(file, suffix, name, max_ratio) as stream:
                yield stream


class _Header(tarfile.TarInfo):
    """Reads headers; tarfile takes a damaged or missing one for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        """Take a header apart."""
        if len(buf) < tarfile.BLOCKSIZE:
            raise OSError("it ends without an end mark")
        if not any(buf):
            return super().frombuf(buf, encoding, errors)  # raises what tarfile ends by
        try:
            info = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            raise OSError(f"bad header ({error})") from None
        if info.type in _HEADERS and info.size > LONGEST_HEADER:
            raise OSError(f"a header of {info.size:,} bytes")
        return info


def _tar_members(
    stream: BufferedReader, name: str, packed: int, max_ratio: float
) -> Iterator[Member]:
    names = _Names(name)
    guard = Guard(name, max_ratio)
    with damage(name):
        archive = tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header)  # noqa: SIM115
    with archive:
        while (info := _next(archive, name)) is not None:
            plain = names.checked(info.name)
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                raise names.refused(info.name, "is a link, a device or sparse")
            inner = cast(IO[bytes], archive.extractfile(info))
            watched = _Watched(inner, f"{name}!{plain}", guard, packed)
            stream = BufferedReader(watched, BUFFER)
            yield Member(plain, info.offset_data, info.size, stream, _said(info))
            archive.members = []  # pyright: ignore[reportAttributeAccessIssue]  else it keeps every header
        _refuse_more(cast(IO[bytes], archive.fileobj), name)


def _said(info: tarfile.TarInfo) -> str:
    """Names of its owner, and attributes of its own."""
    lines = [
        info.uname,
        info.gname,
        *(f"{key}: {value}" for key, value in info.pax_headers.items()),
    ]
    return "\n".join(lines)


def _next(archive: tarfile.TarFile, name: str) -> tarfile.TarInfo | None:
    with damage(name):
        return archive.next()


def _refuse_more(stream: IO[bytes], name: str) -> None:
    """Read to the end, so that a compressed archive is checked to its last byte."""
    while True:
        with damage(name):
            data = stream.read(BUFFER)
        if not data:
            return
        if data.strip(b"\0"):
            raise BadFile(
                f"{name}: data follow the end of the archive. Is it two archives in one file? "
                "Pack them as one."
            )
