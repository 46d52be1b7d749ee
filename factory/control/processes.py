"""Finds every process of a local Ray session and ends it. Which sessions exist is in `sessions`.

Ray's workers leave the process group they were started in, and `gcs_server` survives SIGTERM, so a
group and a polite signal are not enough. A process belongs to a session if any of these says so:
the marker in its environment, its output going to a file in the session's directory, its parent.
Processes are named by pid and start time, so that a pid that is used again is never mistaken for
the one that was meant.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MARKER = "FACTORY_SESSION"
"""Environment variable that every process of a session inherits."""

_PROC = Path("/proc")
_GONE_STATES = frozenset("ZXx")

_KERNEL_THREADS = 2
"""Pid of `kthreadd`, the parent of every kernel thread."""

_STARTING_SECONDS = 2.0
"""How long to wait for processes that are being started; on a busy machine that is not at once."""


@dataclass(frozen=True)
class Process:
    """A living process, as it was seen."""

    pid: int
    parent: int
    start_ticks: int
    command: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.command[:80] or 'no command line'})"

    def lives(self) -> bool:
        """Whether this very process is still there; killed and not yet reaped counts as gone."""
        seen = _seen(self.pid)
        return seen is not None and seen.start_ticks == self.start_ticks

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it is still the same process."""
        if self.lives():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def members(session_id: str, directory: Path) -> list[Process]:
    """Every living process of that session, except this one and those that it descends from."""
    everyone = {seen.pid: seen for pid in _pids() if (seen := _seen(pid)) is not None}
    spared = _ancestry(os.getpid(), everyone)
    found = {
        pid for pid in everyone if pid not in spared and _belongs(pid, session_id, str(directory))
    }
    while grown := {
        pid
        for pid, seen in everyone.items()
        if seen.parent in found and pid not in found and pid not in spared
    }:
        found |= grown
    return [everyone[pid] for pid in sorted(found)]


def end_all(session_id: str, directory: Path, *, patience_seconds: float = 10.0) -> list[Process]:
    """Kill every process of that session until none is left. What outlives it is returned."""
    start = time.monotonic()
    while time.monotonic() < start + patience_seconds:
        starting = _any_starting() and time.monotonic() < start + _STARTING_SECONDS
        left = members(session_id, directory)
        if not left and not starting:
            return []
        for process in left:
            process.send(signal.SIGKILL)
        time.sleep(0.05)
    return members(session_id, directory)


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to the process group that `leader` started, if there is one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _belongs(pid: int, session_id: str, directory: str) -> bool:
    marker = f"{MARKER}={session_id}".encode()
    return marker in _read(pid, "environ").split(b"\0") or any(
        link.startswith(f"{directory}/") for link in _outputs(pid)
    )


def _any_starting() -> bool:
    """Whether a process is between `fork` and the end of `exec`: it shows no environment yet."""
    return any(
        not seen.command and seen.parent not in (0, _KERNEL_THREADS)
        for pid in _pids()
        if (seen := _seen(pid)) is not None
    )


def _outputs(pid: int) -> Iterable[str]:
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            yield os.readlink(_PROC / str(pid) / "fd" / str(descriptor))  # noqa: PTH115  not a path


def _ancestry(pid: int, everyone: dict[int, Process]) -> set[int]:
    line: set[int] = set()
    while pid in everyone and pid not in line:
        line.add(pid)
        pid = everyone[pid].parent
    return line


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  no Path per process


def _seen(pid: int) -> Process | None:
    """The process of that pid, if it lives. The name in `stat` may hold anything, brackets too."""
    line = _read(pid, "stat").decode(errors="replace")
    if not line:
        return None
    state, *fields = line.rpartition(")")[2].split()
    if state in _GONE_STATES:
        return None
    command = _read(pid, "cmdline").rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    return Process(pid, parent=int(fields[0]), start_ticks=int(fields[18]), command=command)


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:  # it ended meanwhile, or belongs to someone else
        return b""
