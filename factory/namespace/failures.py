"""Failures of the file system, told as what they mean for the namespace.

Everything that touches the root runs inside `explained`, so a full disk or a read-only mount is
one readable error wherever it strikes, in our code or in the step that writes its files.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Generator
from pathlib import Path

from factory.errors import FactoryError, NamespaceError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_GONE = frozenset({errno.ESTALE, errno.EIO, errno.ENOTCONN})


@contextlib.contextmanager
def explained(root: Path, doing: str) -> Generator[None]:
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
    name = Path(str(getattr(error, "filename", None) or root))
    if code in _FULL:
        where = "" if name.is_relative_to(root) else f", at {name}"
        return (
            f"No space left while {doing}{where}: {_space(root)}. "
            "Nothing that was there is changed. Free space or raise the quota, then run it again."
        )
    if not name.is_relative_to(root):
        return None  # of the step's own making
    if code in _DENIED:
        return (
            f"The namespace refuses {doing}: {name}: {os.strerror(code)}. "
            f"Is {root} mounted read-only, or does this account lack access to that tree?"
        )
    if code in _GONE or not root.is_dir():
        return (
            f"The namespace went away while {doing}: {name}: {os.strerror(code)}. "
            f"See whether {root} is still mounted, then run it again."
        )
    return None


def _code(error: Exception) -> int:
    if isinstance(error, OSError):
        return error.errno or 0
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode == sqlite3.SQLITE_FULL:
        return errno.ENOSPC
    return 0


def _space(root: Path) -> str:
    try:
        usage = shutil.disk_usage(root)
    except OSError:
        return f"the namespace root {root} cannot be asked for its free space"
    free, total = (f"{amount / 2**20:,.1f} MiB" for amount in (usage.free, usage.total))
    return f"the namespace root {root} has {free} free of {total}"
