"""Small file operations that survive a power failure: each syncs before anyone can see its result.

A rename is atomic for other processes at once, but only a synced file and a synced directory
survive a crash of the machine. Who may write where is in `layout`, who writes when in `lock`.
"""

import contextlib
import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def sync(path: Path) -> None:
    """Bring a file, or the list of names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: Path, root: Path) -> list[Path]:
    """Create `path` and what is missing above it, never the root itself; say what was missing."""
    missing: list[Path] = []
    directory = path
    while directory != root and not directory.is_dir():
        missing.insert(0, directory)
        directory = directory.parent
    for directory in missing:
        directory.mkdir(exist_ok=True)
        sync(directory.parent)
    return missing


def remove_empty(directories: list[Path]) -> None:
    """Remove those that hold nothing, inner ones first."""
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            directory.rmdir()


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, synced; its name is not synced."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, scratch: Path) -> None:
    """Put `data` at `path` in one step: readers see the old content or the new, never a part."""
    write_new(scratch, data)
    scratch.replace(path)
    sync(path.parent)


def replace_link(path: Path, target: str, scratch: Path) -> None:
    """Point the symbolic link `path` to `target` in one step; there is no moment without it."""
    scratch.symlink_to(target)
    scratch.replace(path)
    sync(path.parent)


def exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step. False where the file system cannot (NFS), nothing done."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
