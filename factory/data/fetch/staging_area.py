"""Where an unverified, unscanned copy of a delivery lies while it is judged: nobody else's to see.

Each copy has a directory of its own below `FACTORY_STATE`, outside the namespace and readable by
this account only. It goes when its block ends; what a killed process left goes at the next start.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from factory.errors import SettingsError

_LOCK = "lock"
"""Held by the process that works in the directory; the kernel lets go of it however that ends."""


@contextmanager
def staging_area(state: Path, root: Path) -> Generator[Path]:
    """An empty directory for one delivery, removed when the block ends.

    Raises:
        SettingsError: `FACTORY_STATE` lies inside the namespace, or cannot be written.
    """
    if state.resolve().is_relative_to(root.resolve()):
        raise SettingsError(
            f"FACTORY_STATE is {state}, inside the namespace {root}: a delivery would be in it "
            "before it is scanned. Set FACTORY_STATE to a directory outside."
        )
    sweep(state)
    with _made(state) as area:
        try:
            content = area / "content"
            content.mkdir()
            yield content
        finally:
            shutil.rmtree(area, ignore_errors=True)


def sweep(state: Path) -> list[Path]:
    """Remove what processes left that are gone; say what was removed."""
    base = _base(state)
    if not base.is_dir():
        return []
    removed: list[Path] = []
    with _locked(base / _LOCK):
        for area in sorted(path for path in base.iterdir() if path.is_dir()):
            if _is_abandoned(area):
                shutil.rmtree(area, ignore_errors=True)
                removed.append(area)
    return removed


def _base(state: Path) -> Path:
    return state / "intake"


@contextmanager
def _made(state: Path) -> Generator[Path]:
    """A directory with its lock held, made under the common lock: no sweep comes between."""
    base = _base(state)
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        base.chmod(0o700)
        with _locked(base / _LOCK):
            area = Path(tempfile.mkdtemp(dir=base))
            lock = os.open(area / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise SettingsError(
            f"FACTORY_STATE is {state}, where a delivery cannot be staged ({error.strerror})."
        ) from None
    try:
        yield area
    finally:
        os.close(lock)


@contextmanager
def _locked(file: Path) -> Generator[None]:
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_abandoned(area: Path) -> bool:
    """Whether nobody holds the directory's lock. One without a lock was never worked in."""
    with suppress(FileNotFoundError):
        descriptor = os.open(area / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
    return True
