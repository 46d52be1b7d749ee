"""Of runs: which lock a run reads, over all of its attempts.

`mix.lock` in its directory is what it began with; `mix.3.lock` is what its third attempt reads,
where that is another one than the attempt before it would have read.
"""

from pathlib import Path

from factory.data.mixing.lock import MixLock
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.namespace.run_files import contents

FILE = "mix.lock"

MIX_LOCK = "mix lock"
"""The field of a checkpoint's identity that has the lock's hash."""


def lock_path(run: Path) -> Path:
    """The lock of the run's last attempt. It need not be there yet."""
    return run / _last(run)


def lock_of(run: Path) -> MixLock | None:
    """The lock of the run's last attempt, if there is one.

    Raises:
        SpecError: it is no lock.
        NamespaceError: it is no file of the run's.
    """
    return _read(run, _last(run))


def goes_on_with(run: RunDirectory) -> MixLock | None:
    """The lock that the next attempt reads, unless its data begin anew; none before the first.

    That of the newest complete checkpoint. The last attempt may have read another one, and have
    ended before it saved anything.

    Raises:
        SpecError: a lock cannot be read.
    """
    last = lock_of(run.path)
    saved = complete_checkpoints(run)
    wanted = saved[-1].marker.identity.get(MIX_LOCK) if saved else None
    if wanted is None or last is None or last.hash == wanted:
        return last
    earlier = (_read(run.path, name) for name in (FILE, *_later(run.path).values()))
    return next((lock for lock in earlier if lock is not None and lock.hash == wanted), last)


def keep(run: RunDirectory, attempt: int, lock: MixLock) -> MixLock:
    """Let an attempt read this lock; returns it as it is in the run's directory."""
    last = lock_of(run.path)
    if last is not None and last.hash == lock.hash:
        return last
    run.create(FILE if last is None else f"mix.{attempt}.lock", lock.to_json())
    return lock


def _last(run: Path) -> str:
    later = _later(run)
    return later[max(later)] if later else FILE


def _later(run: Path) -> dict[int, str]:
    return {
        int(number): path.name
        for path in run.glob("mix.*.lock")
        if (number := path.name.split(".")[1]).isdecimal()
    }


def _read(run: Path, name: str) -> MixLock | None:
    try:
        return MixLock.from_json(contents(run, name), str(run / name))
    except FileNotFoundError:
        return None
