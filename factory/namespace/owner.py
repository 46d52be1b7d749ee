"""Who owns a lock or a staging directory, and whether that process is provably gone.

A process is named by pid and start time, within a boot and a pid namespace (two containers on one
node may show the same host name and pid). Only within the same two can its death be proved; for
any other owner `lock` waits for the lease to run out.
"""

import functools
import os
import socket
from pathlib import Path

from pydantic import BaseModel, ValidationError

_DEAD_STATES = frozenset("ZXx")
"""Killed but not yet reaped by its parent counts as gone: it will never write again."""


class Owner(BaseModel, frozen=True, extra="forbid"):
    """One process, as another process on any machine can name it."""

    host: str
    pid: int
    start_ticks: int | None
    """Clock ticks from boot to the start of the process: a reused pid has another."""
    boot_id: str | None
    pid_namespace: str | None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def is_visible(self) -> bool:
        """Whether this process can tell if the owner still exists."""
        boot_id, pid_namespace = _here()
        if boot_id is None or self.start_ticks is None:
            return False
        return (self.boot_id, self.pid_namespace) == (boot_id, pid_namespace)

    def is_gone(self) -> bool:
        """True only where it is certain: this boot, this pid namespace, no such process."""
        return self.is_visible() and _start_ticks(self.pid) != self.start_ticks


def this_process() -> Owner:
    """The owner that others will see in what this process leaves behind."""
    boot_id, pid_namespace = _here()
    pid = os.getpid()
    return Owner(
        host=socket.gethostname(),
        pid=pid,
        start_ticks=_start_ticks(pid),
        boot_id=boot_id,
        pid_namespace=pid_namespace,
    )


def read_owner(path: Path) -> Owner | None:
    """The owner in that file; none where it is missing or was cut off by a crash."""
    try:
        return Owner.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError):
        return None


@functools.cache
def _here() -> tuple[str | None, str | None]:
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot_id, str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None, None


def _start_ticks(pid: int) -> int | None:
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = line.rpartition(")")[2].split()  # the name before it may hold anything
    return None if state in _DEAD_STATES else int(fields[18])
