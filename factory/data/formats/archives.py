"""Archives: the members of zip and tar files as streams, in the order of the archive.

Nothing is unpacked to disk. An archive is refused as a whole when a member's name leads out of it,
when a member is a link, a device or encrypted, when two have the same name, and when it unpacks to
far more than it should. A cut tar ends with an error, also where it is cut between two members.
"""

import re
import stat
import tarfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from factory.data.formats import zip_layout
from factory.data.formats.compression import Guard, unpacked
from factory.data.formats.errorpage import refuse_page
from factory.data.formats.members import Member, Names, Watched, damage
from factory.data.formats.opened import BUFFER, opened
from factory.data.pattern import stem
from factory.errors import BadFile

LONGEST_HEADER = 2**20
"""Bytes of the long names and attributes that a tar file gives a member."""

_READABLE = re.compile(rb"[\x20-\x7e\x80-\xff]{6,}")
"""Letters in a field of numbers; a field that holds a text is one such run."""

_FACTS = {
    *("mtime", "atime", "ctime", "LIBARCHIVE.creationtime", "size", "uid", "gid"),
    *("SCHILY.dev", "SCHILY.ino", "SCHILY.nlink"),
}
"""Attributes of a member that are numbers: times with nine digits of a second, among others."""

_FACT = re.compile(r"[-\d.]+")

_TAR_OF = {"tgz": "gz", "tbz2": "bz2", "txz": "xz"}

_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


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
    """What a zip says beside its members: comments, and words in extra fields.

    Raises:
        BadFile: it is damaged.
    """
    if not is_zip(name):
        return []
    with zip_archive(path, name) as archive:
        found = [archive.comment, *(info.comment for info in archive.infolist())]
        fields = [*_extras(archive, name), *(info.extra for info in archive.infolist())]
    found += [text for one in fields for text in _READABLE.findall(one)]
    return [one.decode(errors="replace") for one in found if one]


def _zip(path: Path, name: str, max_ratio: float) -> Generator[Member]:
    packed = path.stat().st_size
    guard = Guard(name, max_ratio)
    with zip_archive(path, name) as archive:
        for plain, info in zip_names(archive, name).items():
            full = f"{name}!{plain}"
            with damage(full):
                inner = archive.open(info)
            watched = Watched(inner, full, guard, packed)
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
            _extras(archive, name)
            yield archive


def _extras(archive: zipfile.ZipFile, name: str) -> list[bytes]:
    """What stands in the extra fields of all members.

    Raises:
        BadFile: there is more in the file than its parts.
    """
    file = cast(BufferedReader, archive.fp)
    try:
        return zip_layout.extras(file, archive.infolist())
    except zip_layout.Gap as gap:
        raise BadFile(
            f"{name}: there are {gap}, as when something was put before, between or behind the "
            "parts of a zip. Nobody would read it, so the archive is refused; have it packed anew."
        ) from None


def zip_names(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by their names.

    Raises:
        BadFile: the archive is refused.
    """
    names = Names(name)
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        folder = info.filename.endswith("/")
        plain = names.checked(info.orig_filename, folder=folder)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if folder and not info.file_size:
            continue
        if folder:
            raise names.refused(info.filename, "is a folder with contents")
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
    names = Names(name)
    guard = Guard(name, max_ratio)
    with damage(name):
        archive = tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header)  # noqa: SIM115
    with archive:
        while (info := _next(archive, name)) is not None:
            plain = names.checked(info.name, folder=info.isdir())
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                raise names.refused(info.name, "is a link, a device or sparse")
            inner = cast(IO[bytes], archive.extractfile(info))
            watched = Watched(inner, f"{name}!{plain}", guard, packed)
            stream = BufferedReader(watched, BUFFER)
            yield Member(plain, info.offset_data, info.size, stream, _said(info))
            archive.members = []  # pyright: ignore[reportAttributeAccessIssue]  else it keeps every header
        _refuse_more(cast(IO[bytes], archive.fileobj), name)


def _said(info: tarfile.TarInfo) -> str:
    """Names of its owner, and attributes of its own, but for times, sizes and the like."""
    lines = [
        info.uname,
        info.gname,
        *(
            f"{key}: {value}"
            for key, value in info.pax_headers.items()
            if key not in _FACTS or not _FACT.fullmatch(value)
        ),
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
