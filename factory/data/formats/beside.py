"""Beside: other files of a source, as a row asks for them by path; nothing outside of it.

A row of a plain file reads from the source's folder, a row of an archive from the same archive.
"""

import functools
import posixpath
import zipfile
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path

from factory.data.formats.archives import is_zip, members, tar_stream, zip_archive, zip_names
from factory.data.formats.limits import LARGEST_FILE
from factory.data.formats.members import damage
from factory.data.formats.opened import BUFFER
from factory.errors import BadRow

MISSING = "file beside the row is missing"
OUTSIDE = "path leads out of the source"
TOO_LARGE = "file beside the row is too large"


def within(file: str, path: str) -> str:
    """A path, counted from the folder of `file`, as counted from the top.

    Raises:
        BadRow: it leads out.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if not path or path.startswith("/") or "\0" in path or target.split("/")[0] == "..":
        raise BadRow(OUTSIDE)
    return target


def read_beside(root: Path, file: str, path: str) -> bytes:
    """A file of the folder `root`.

    Raises:
        BadRow: it is not there, is no plain file, or lies outside, also by a link.
    """
    target = root / within(file, path)
    try:
        real = target.resolve(strict=True)
    except (OSError, RuntimeError):
        raise BadRow(MISSING) from None
    if not real.is_relative_to(root.resolve()):
        raise BadRow(OUTSIDE)
    if not real.is_file():
        raise BadRow(MISSING)
    if real.stat().st_size > LARGEST_FILE:
        raise BadRow(TOO_LARGE)
    return real.read_bytes()


class ArchiveBeside(ExitStack):
    """Members of one archive, opened when a row first asks for one."""

    def __init__(self, path: Path, name: str, max_ratio: float) -> None:
        super().__init__()
        self._path = path
        self._name = name
        self._max_ratio = max_ratio

    def read(self, file: str, path: str) -> bytes:
        """A member, by its path from the folder of the member `file`.

        Raises:
            BadRow: it is not there, or the path leads out of the archive.
        """
        wanted = within(file, path)
        return self._from_zip(wanted) if is_zip(self._name) else self._from_tar(wanted)

    @functools.cached_property
    def _zip(self) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
        archive = self.enter_context(zip_archive(self._path, self._name))
        return archive, zip_names(archive, self._name)

    def _from_zip(self, wanted: str) -> bytes:
        archive, names = self._zip
        info = names.get(wanted)
        if info is None:
            raise BadRow(MISSING)
        if info.file_size > LARGEST_FILE:
            raise BadRow(TOO_LARGE)
        with damage(f"{self._name}!{wanted}"):
            return archive.read(info)

    @functools.cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Where each member lies in the unpacked tar: found out by one pass over it."""
        found = members(self._path, self._name, self._max_ratio)
        return {one.name: (one.offset, one.size) for one in found}

    def _from_tar(self, wanted: str) -> bytes:
        if wanted not in self._places:
            raise BadRow(MISSING)
        offset, size = self._places[wanted]
        if size > LARGEST_FILE:
            raise BadRow(TOO_LARGE)
        with tar_stream(self._path, self._name, self._max_ratio) as stream:
            if stream.seekable():
                stream.seek(offset)
            else:
                _skip(stream, offset)
            return stream.read(size)


def _skip(stream: BufferedReader, count: int) -> None:
    """Read over what a compressed tar has before a member: it is unpacked anew for each."""
    while count > 0:
        count -= len(stream.read(min(count, BUFFER)))
