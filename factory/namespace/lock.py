"""Locks in the namespace itself: they hold between machines, and a dead owner does not keep one.

A lock is a directory `<name>` that holds one file, `<name>/<token>`, with the owner inside; the
token is new for each acquisition.

- **Taking** prepares `<name>-<token>/<token>` and renames the directory to `<name>`. A rename onto
  a directory that is not empty fails, onto an empty or absent one succeeds, in one step, on local
  file systems and on NFS alike. A reply that NFS loses shows as "source is gone"; whether the token
  is in place then says who won. flock is not used: on NFS it depends on a lock service, and its
  locks do not name their owner.
- **Removing**, by the owner or by someone who breaks a dead owner's lock, unlinks
  `<name>/<token>`. The token is in the name, so nobody can remove a lock other than the one looked
  at: two breakers cannot both win, and an owner that wakes up after its lock was broken cannot
  release its successor's. Left behind is an empty directory, which is a free lock.
- **Alive** is an owner on this machine whose process exists; it keeps the lock even if it hangs. Of
  an owner elsewhere only its heartbeat can be seen: it touches the file every `heartbeat_seconds`,
  and after `lease_seconds` without one the lock may be broken. Both times are the file server's (a
  touch lets the server set the time), so clocks of different machines are never compared.
- **Fencing**: an owner calls `confirm` just before it publishes. One whose lease ran out (suspended
  machine, lost mount) finds its token gone and stops.
"""

import contextlib
import errno
import logging
import os
import threading
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from factory.errors import NamespaceError
from factory.namespace.owner import Owner, read_owner, this_process

_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LockTimes:
    """How long to wait for a lock, and when an owner on another machine counts as dead."""

    wait_seconds: float = 600.0
    lease_seconds: float = 120.0
    heartbeat_seconds: float = 15.0


@dataclass(frozen=True)
class Lock:
    """One name to hold: what it protects is said in `subject`, for messages."""

    place: Path
    subject: str
    times: LockTimes = field(default_factory=LockTimes)

    @contextlib.contextmanager
    def hold(self) -> Generator["Held"]:
        """Hold the lock, waiting for its present owner for `wait_seconds` at most.

        Raises:
            NamespaceError: someone alive still holds it; the message names the owner.
        """
        held = Held(self, uuid.uuid4().hex, os.getpid())
        try:
            held.take()
            with held.beating():
                yield held
        finally:
            held.release()


@dataclass
class Held:
    """One acquisition of a lock, by this process."""

    lock: Lock
    token: str
    pid: int

    @property
    def file(self) -> Path:
        """What shows that the lock is held by this acquisition."""
        return self.lock.place / self.token

    @property
    def waiting(self) -> Path:
        """The prepared directory, before it becomes the lock."""
        return self.lock.place.with_name(f"{self.lock.place.name}-{self.token}")

    def take(self) -> None:
        """Wait for the lock and take it."""
        deadline = time.monotonic() + self.lock.times.wait_seconds
        pause = 0.02
        told = False
        while not self._try():
            holder = self._holder()
            if holder is None:
                continue
            if holder.is_dead(self.lock.times.lease_seconds):
                _log.warning(
                    "%s: breaking the lock of %s, which is gone", self.lock.subject, holder
                )
                holder.file.unlink(missing_ok=True)
                continue
            if time.monotonic() >= deadline:
                raise NamespaceError(self._busy(holder))
            if not told:
                _log.info("%s: waiting for %s", self.lock.subject, holder)
                told = True
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 1.5, 1.0)

    def confirm(self) -> None:
        """Check that the lock was not broken meanwhile.

        Raises:
            NamespaceError: it was, because no heartbeat was seen for the length of the lease.
        """
        try:
            os.utime(self.file)
        except OSError as error:
            raise NamespaceError(
                f"{self.lock.subject}: this process lost its lock, because no heartbeat reached "
                f"the namespace for {self.lock.times.lease_seconds:g} s or the file system went "
                f"away ({error.strerror}). Nothing was published; run the step again."
            ) from error

    def release(self) -> None:
        """Give up what was taken, if anything still is; a forked child gives up nothing."""
        if os.getpid() != self.pid:
            return
        for directory in (self.waiting, self.lock.place):
            with contextlib.suppress(OSError):
                (directory / self.token).unlink()
            with contextlib.suppress(OSError):
                directory.rmdir()

    @contextlib.contextmanager
    def beating(self) -> Generator[None]:
        """Renew the lease from a thread while the body runs."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self.lock.times.heartbeat_seconds):
                with contextlib.suppress(OSError):  # `confirm` is where a lost lock matters
                    os.utime(self.file)

        thread = threading.Thread(target=beat, name=f"lease {self.lock.place.name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _try(self) -> bool:
        self._prepare()
        try:
            self.waiting.rename(self.lock.place)
        except FileNotFoundError:
            return self.file.exists()
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            raise
        try:
            os.utime(self.file)
        except FileNotFoundError:
            return False
        return True

    def _prepare(self) -> None:
        try:
            os.utime(self.waiting / self.token)
        except FileNotFoundError:
            self.lock.place.parent.mkdir(exist_ok=True)
            self.waiting.mkdir(exist_ok=True)
            content = this_process().model_dump_json().encode()
            (self.waiting / self.token).write_bytes(content)

    def _holder(self) -> "_Holder | None":
        try:
            file = next(iter(self.lock.place.iterdir()), None)
            if file is None:
                return None
            now = (self.waiting / self.token).stat().st_mtime
            return _Holder(file, read_owner(file), now - _fresh_mtime(file))
        except FileNotFoundError:
            return None

    def _busy(self, holder: "_Holder") -> str:
        return (
            f"{self.lock.subject} has to wait for {holder}, and waited "
            f"{self.lock.times.wait_seconds:g} s. Try again when it has finished, or end that "
            "process: its lock is then free at once, or, from another machine, after "
            f"{self.lock.times.lease_seconds:g} s."
        )


@dataclass(frozen=True)
class _Holder:
    file: Path
    owner: Owner | None
    silent_seconds: float

    def is_dead(self, lease_seconds: float) -> bool:
        if self.owner is not None and self.owner.is_visible():
            return self.owner.is_gone()
        return self.silent_seconds > lease_seconds

    def __str__(self) -> str:
        who = "an unreadable owner" if self.owner is None else str(self.owner)
        return f"{who} (last heartbeat {max(0.0, self.silent_seconds):.0f} s ago)"


def _fresh_mtime(file: Path) -> float:
    """NFS clients cache attributes for up to a minute; opening the file asks the server."""
    with file.open("rb") as opened:
        return os.fstat(opened.fileno()).st_mtime
