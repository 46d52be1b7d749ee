"""Removing what dead writers left: locks, staging directories, half-made links.

Nothing here is ever needed by a reader. What belongs to a process that is provably gone goes at
once; what cannot be judged (another machine, a cut-off owner file) when it is old enough.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from factory.errors import KeyFormatError, NamespaceError
from factory.keys import Classification, Key, parse
from factory.namespace.durable import remove_empty
from factory.namespace.layout import INPUTS, VERSIONS, WORK, Place, is_version_id
from factory.namespace.lock import Held, Lock, LockTimes
from factory.namespace.owner import read_owner
from factory.namespace.pins import LOCK, directory, holds
from factory.namespace.runs import CLASSIFICATIONS, RUNS, list_runs
from factory.namespace.staging import OWNER

_RUN_DIRECTORIES = frozenset(f"{classification}/{RUNS}" for classification in CLASSIFICATIONS)


TRASH = "trash"
"""Kind of the scratch names under which `retention` removes versions."""


WORK_AGE = timedelta(days=7)
"""How long the work of a step that was cut off waits for the step to be run again."""


def places(root: Path, *, everything: bool = False) -> Iterator[Place]:
    """Every key that has a directory of versions, also an empty one.

    What this account may not list is left out, or, with `everything`, an error.

    Raises:
        NamespaceError: `everything` was asked for, and a directory may not be listed.
    """
    for classification in CLASSIFICATIONS:
        yield from _below(root, root / classification, everything)


def published_keys(root: Path) -> Iterator[Key]:
    """Every key that has a version."""
    return (place.key for place in places(root) if place.published())


def sweep(root: Path, minimum_age: timedelta, times: LockTimes) -> list[Path]:
    """Remove leftovers of every key and run that nobody is writing; say what was removed."""
    removed: list[Path] = []
    for place in places(root):
        with contextlib.suppress(NamespaceError):  # a live writer: its own, later
            removed += _sweep_key(place, minimum_age, times)
    for run in list_runs(root):
        for path in run.path.glob(".creating-*"):
            if _age(path, run.path) >= minimum_age.total_seconds():
                path.unlink(missing_ok=True)
                removed.append(path)
    for classification in CLASSIFICATIONS:
        removed += _sweep_pins(root, classification, minimum_age)
    return removed


def _sweep_pins(root: Path, tree: Classification, minimum_age: timedelta) -> list[Path]:
    """Pins that hold no longer, and what processes left that died while they took the lock."""
    now = time.time()
    oldest = now - minimum_age.total_seconds()
    pins = directory(root, tree)
    removed = [path for path in pins.glob("*.json") if not holds(path, now)]
    removed += [path for path in pins.glob(".creating-*") if path.lstat().st_mtime < oldest]
    locks = list((root / tree).glob(f"{LOCK}*"))
    for file in (file for lock in locks for file in _entries(lock)):
        owner = read_owner(file)
        visible = owner is not None and owner.is_visible()
        if owner.is_gone() if owner and visible else file.lstat().st_mtime < oldest:
            removed.append(file)
    unused = [lock for lock in locks if not _entries(lock) and lock.lstat().st_mtime < oldest]
    for path in removed:
        path.unlink(missing_ok=True)
    remove_empty([pins, *unused, *(path.parent for path in removed)])
    return removed


def _sweep_key(place: Place, minimum_age: timedelta, times: LockTimes) -> list[Path]:
    now = LockTimes(
        wait_seconds=0,
        lease_seconds=times.lease_seconds,
        heartbeat_seconds=times.heartbeat_seconds,
    )
    before = {path for path in (place.writing, place.recording) if _entries(path)}
    removed: list[Path] = []
    with (
        Lock(place.writing, f"Sweeping {place.key}", now).hold() as writing,
        Lock(place.recording, f"Sweeping {place.key}", now).hold() as recording,
    ):
        own = {writing.lock.place, recording.lock.place}
        for path in sorted(place.versions.iterdir()):
            if path in own or path == place.inputs or is_version_id(path.name):
                continue
            if _is_abandoned(path, writing, minimum_age):
                _remove(path)
                removed.append(path)
        for entry in _entries(place.inputs):
            if not entry.exists():  # entered, and then the writer died before publishing
                entry.unlink()
                removed.append(entry)
    remove_empty([place.versions, place.inputs])
    return sorted([*before, *removed])


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except FileNotFoundError:
        return []


def _is_abandoned(path: Path, clock: Held, minimum_age: timedelta) -> bool:
    if path.name.startswith(f".{TRASH}-"):
        return True
    if path.name.startswith(f".{WORK}-"):
        published = path.parent / INPUTS / path.name.removeprefix(f".{WORK}-")
        if published.exists():
            return True
        return _age(path, clock.file) >= max(minimum_age, WORK_AGE).total_seconds()
    owner = read_owner(path / OWNER)
    if owner is None:  # a lock that was never taken holds its owner under its token
        owner = read_owner(path / path.name.rpartition("-")[2])
    if owner is not None and owner.is_visible():
        return owner.is_gone()
    return _age(path, clock.file) >= minimum_age.total_seconds()


def _age(path: Path, clock: Path) -> float:
    """Seconds since `path` changed, by the file server's own clock."""
    try:
        os.utime(clock)
        return clock.stat().st_mtime - path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _scan(directory: Path, everything: bool) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        if not everything:
            return []
    raise NamespaceError(
        f"{directory} may not be listed by this account, so nobody can say which versions those in "
        "it were made from. Use an account that may read both trees."
    )


def _below(root: Path, directory: Path, everything: bool) -> Iterator[Place]:
    for entry in _scan(directory, everything):
        path = Path(entry.path)
        relative = path.relative_to(root).as_posix()
        if not entry.is_dir(follow_symlinks=False) or relative in _RUN_DIRECTORIES:
            continue
        if entry.name.endswith(VERSIONS):
            with contextlib.suppress(KeyFormatError):  # somebody else's directory
                yield Place(root, parse(relative.removesuffix(VERSIONS)))
        else:
            yield from _below(root, path, everything)
