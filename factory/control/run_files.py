"""Files of a run's directory as the control plane opens them: never through a link.

The pods of a run may write in its directory. A link that they leave there would make the control
plane read, or write, what they cannot. Writing line by line is in `RunDirectory`.
"""

import errno
import os
import stat
from pathlib import PurePosixPath

from factory.errors import NamespaceError
from factory.namespace import RunDirectory

_NOT_OURS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def opened(run: RunDirectory, name: str, flags: int) -> int:
    """A descriptor of that file inside the run's directory.

    Raises:
        NamespaceError: it is a link, lies behind one, or is no file.
        OSError: it is not there, or cannot be opened.
    """
    *folders, file = PurePosixPath(name).parts
    parent = _step(run, str(run.path), _FOLDER, None)
    try:
        for folder in folders:
            inner = _step(run, folder, _FOLDER, parent)
            os.close(parent)
            parent = inner
        # Without blocking: a pipe would wait for its other end.
        found = _step(run, file, flags | os.O_NOFOLLOW | os.O_NONBLOCK, parent)
    finally:
        os.close(parent)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise _not_ours(run, file)
    return found


def contents(run: RunDirectory, name: str, limit: int) -> bytes:
    """A whole file of the run's directory.

    Raises:
        NamespaceError: as `opened`; or it is larger than `limit` bytes.
        OSError: it is not there, or cannot be read.
    """
    with os.fdopen(opened(run, name, os.O_RDONLY), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise NamespaceError(f"{run}: {name} is larger than {limit:,} bytes; it is not read.")
    return data


def _step(run: RunDirectory, name: str, flags: int, parent: int | None) -> int:
    try:
        return os.open(name, flags, 0o666, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _NOT_OURS:
            raise _not_ours(run, name) from None
        raise


def _not_ours(run: RunDirectory, name: str) -> NamespaceError:
    return NamespaceError(
        f"{run}: {name} is a link, or no file. Nothing of the factory makes one there, so it is "
        "not opened."
    )
