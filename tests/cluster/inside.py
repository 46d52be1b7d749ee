"""The processes and the network of a pod, as the machine sees them that its node is on."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import leftovers
from tests.cluster.api import Object

_PAUSE = ["/pause"]


@dataclass(frozen=True)
class Process:
    """One process of a pod."""

    pid: int
    """On the machine."""
    number: int
    """In its container."""
    command: Sequence[str]

    @property
    def program(self) -> str:
        """The name of its program."""
        return Path(self.command[0]).name

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)


def processes(cluster: str, pod: Object) -> list[Process]:
    """Those of the pod's own containers, which carry the name of the cluster's directory."""
    return [one for one in _processes(cluster, pod) if list(one.command) != _PAUSE]


def the_one(of: list[Process], which: Callable[[Process], bool]) -> Process:
    """The one that is meant.

    Raises:
        LookupError: there is none.
    """
    found = next(filter(which, of), None)
    if found is None:
        raise LookupError(f"not among {[' '.join(one.command)[:80] for one in of]}")
    return found


def set_network(cluster: str, pod: Object, state: str) -> None:
    """Take the pod's link `down`, or `up` again, at the end that is the machine's."""
    pause = the_one(_processes(cluster, pod), lambda one: list(one.command) == _PAUSE)
    index = Path(f"/proc/{pause.pid}/root/sys/class/net/eth0/iflink").read_text()
    links = Path("/sys/class/net").iterdir()
    link = next(one.name for one in links if (one / "ifindex").read_text() == index)
    subprocess.run(["ip", "link", "set", link, state], check=True)  # noqa: S607


def _processes(cluster: str, pod: Object) -> list[Process]:
    pids = {
        int(line)
        for group in leftovers.control_groups(cluster)
        for folder in group.rglob(f"pod{pod['metadata']['uid']}")
        for procs in folder.rglob("cgroup.procs")
        for line in procs.read_text().split()
    }
    return [one for pid in sorted(pids) if (one := _process(pid)) is not None]


def _process(pid: int) -> Process | None:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has ended meanwhile
    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return Process(pid, int(numbers.split()[-1]), command) if command else None
