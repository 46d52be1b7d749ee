"""Failures of the file system, told as what they mean for the namespace.

Everything that touches the root runs inside `explained`, so a full disk or a read-only mount is
one readable error wherever it strikes, in our code or in the step that writes its files.
"""

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from factory.errors import FactoryError, NamespaceError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_GONE = frozenset({errno.ESTALE, errno.EIO, errno.ENOTCONN})


@contextlib.contextmanager
def explained(root: Path, doing: str) -> Iterator[None]:
    """Turn what the operating system refuses into a `NamespaceError` that says what to do."""
    try:
        yield
    except FactoryError:
        raise
    except Exception as error:
        message = _explain(root, doing, error)
        if message is None:
            raise
        raise NamespaceError(message) from error


def _explain(root: Path, doing: str, error: Exception) -> str | None:
    code = _code(error)
    if code in _FULL:
        return (
            f"No space left while {doing}: {_space(root)}. "
            "Nothing that was there is changed. Free space or raise the quota, then run it again."
        )
    name = getattr(error, "filename", None)
    if name is None or not Path(str(name)).is_relative_to(root):
        return None  # of the step's own making
    if code in _DENIED:
        return (
            f"The namespace refuses {doing}: {name}: {error.args[1]}. Is {root} mounted read-only, "
            "or does this account lack access to that tree?"
        )
    if code in _GONE:
        return (
            f"The namespace went away while {doing}: {name}: {error.args[1]}. Check {root}'s mount."
        )
    return None


def _code(error: Exception) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode == sqlite3.SQLITE_FULL:
        return errno.ENOSPC
    return None


def _space(root: Path) -> str:
    try:
        usage = shutil.disk_usage(root)
    except OSError:
        return f"the namespace root {root} cannot be asked for its free space"
    free, total = (f"{amount / 2**20:,.1f} MiB" for amount in (usage.free, usage.total))
    return f"the namespace root {root} has {free} free of {total}"
