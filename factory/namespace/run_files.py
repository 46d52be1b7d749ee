"""Files of a run's directory as those open them who cannot trust it: never through a link.

The pods of a run may write in its directory. A link that they leave there would make the control
plane read, or write, what they cannot; a pipe would hold it up, a file without end fill its memory.
So whoever reads a run reads through `contents`, whatever the run itself is made of. Writing line by
line is in `RunDirectory`.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from factory.errors import NamespaceError
from factory.reports import lines_of

LARGEST_DOCUMENT_BYTES = 64 << 20
"""Of what is read at once: a spec, a record, a lock, the marker of a checkpoint. The marker of one
that thousands of ranks have written takes a few of these."""

LARGEST_LINES_BYTES = 256 << 20
"""Of a file of lines: more than a million steps, or what a hundred thousand intervals have counted
of ten datasets. What is read takes several times as much memory."""

_NOT_OURS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def opened(run: Path, name: str, flags: int) -> int:
    """A descriptor of that file inside the run's directory.

    Raises:
        NamespaceError: it is a link, lies behind one, or is no file.
        OSError: it is not there, or cannot be opened.
    """
    inside = PurePosixPath(name)
    with _folder(run, inside.parent) as parent:
        # Without blocking: a pipe would wait for its other end.
        found = _step(run / inside, flags | os.O_NOFOLLOW | os.O_NONBLOCK, parent)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise _not_ours(run / inside)
    return found


def contents(run: Path, name: str, limit: int = LARGEST_DOCUMENT_BYTES) -> bytes:
    """A whole file of the run's directory.

    Raises:
        NamespaceError: as `opened`; or it is larger than `limit` bytes.
        OSError: it is not there, or cannot be read.
    """
    with os.fdopen(opened(run, name, os.O_RDONLY), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise NamespaceError(f"{run / name} is larger than {limit:,} bytes, so it is not read.")
    return data


def lines[M: BaseModel](run: Path, name: str, model: type[M]) -> list[M]:
    """The whole lines of a file that the run appends to, oldest first; none where there is none.

    Raises:
        NamespaceError: as `contents`.
        RunFailed: a whole line is something else.
    """
    try:
        data = contents(run, name, LARGEST_LINES_BYTES)
    except FileNotFoundError:
        return []
    return lines_of(data, str(run / name), model)


def listed(run: Path, folder: str) -> list[str]:
    """The names in a folder of the run's directory, in order; none where there is no such folder.

    Raises:
        NamespaceError: it is a link, lies behind one, or is no folder.
        OSError: it cannot be listed.
    """
    try:
        with _folder(run, PurePosixPath(folder)) as found:
            return sorted(os.listdir(found))  # noqa: PTH208  of a descriptor
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _folder(run: Path, inside: PurePosixPath) -> Generator[int]:
    """A descriptor of a folder, reached one step after the other."""
    at, found = run, _step(run, _FOLDER, None)
    try:
        for part in inside.parts:
            at /= part
            inner = _step(at, _FOLDER, found)
            os.close(found)
            found = inner
        yield found
    finally:
        os.close(found)


def _step(path: Path, flags: int, parent: int | None) -> int:
    try:
        return os.open(path if parent is None else path.name, flags, 0o666, dir_fd=parent)
    except OSError as error:
        if error.errno in _NOT_OURS:
            raise _not_ours(path) from None
        error.filename = str(path)
        raise


def _not_ours(path: Path) -> NamespaceError:
    return NamespaceError(
        f"{path} is a link, or not of the kind that belongs there. Nothing of the factory makes "
        "one there, so it is not opened."
    )
