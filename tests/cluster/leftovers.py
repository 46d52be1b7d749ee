"""What containers leave outside of their cluster's directory once every process is killed.

Control groups, a bridge and namespaces are named after the directory, mounts lie below it, and what
others keep for it names it. A cluster without kubelets has none of these.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
LOG_LINKS = Path("/var/log/containers")
"""Where kubelets link the logs of their containers, wherever the logs are."""
NETWORKS = Path("/var/lib/cni/results")
"""Where containerd remembers the networks of each pod, wherever the rest of its state is."""

NAMESPACES = Path("/var/tmp")  # noqa: S108  what pods mount cannot lie in their /tmp
"""Where a cluster's namespaces lie: pods see them at their own path."""

_PATIENCE_SECONDS = 10.0


def clear(directory: Path) -> None:
    """Remove what is left of the containers of the cluster in that directory.

    Raises:
        RuntimeError: something stays mounted below it.
    """
    for group in control_groups(directory.name):
        _end(group)
    _remove_sockets(directory)
    _unmount(directory)
    _remove_bridge(directory.name)
    for link in _entries(LOG_LINKS):
        if link.is_symlink() and _is_below(str(link.readlink()), directory):
            link.unlink(missing_ok=True)
    for result in _entries(NETWORKS):
        if f'"{directory}/'.encode() in result.read_bytes():
            result.unlink(missing_ok=True)
    for namespace in NAMESPACES.glob(f"{directory.name}-*"):
        shutil.rmtree(namespace)


def control_groups(name: str) -> list[Path]:
    """The groups of that name in every hierarchy."""
    return sorted({*CGROUPS.glob(f"{name}-*"), *CGROUPS.glob(f"*/{name}-*")})


def mounts(directory: Path) -> list[str]:
    """What is mounted below it, the deepest first."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return sorted((p for p in points if _is_below(p, directory)), key=len, reverse=True)


def has_bridge(name: str) -> bool:
    """Whether the cluster's network is there."""
    return Path("/sys/class/net", name).exists()


def _end(group: Path) -> None:
    """Kill every process of a control group, also one whose parent is gone, and remove it."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (pids := list(_pids(group))) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def _pids(group: Path) -> Iterator[int]:
    for path in group.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            yield from map(int, path.read_text(encoding="ascii").split())


def _remove_sockets(directory: Path) -> None:
    """Those of killed shims lie where containerd's default state is; each one's name is kept."""
    for kept in directory.glob("*/state/io.containerd.runtime.v2.task/*/*/address"):
        address = kept.read_text(encoding="utf-8").removeprefix("unix://")
        with contextlib.suppress(OSError):
            Path(address).unlink()


def _unmount(directory: Path) -> None:
    for point in mounts(directory):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)  # noqa: S607
    if left := mounts(directory):
        raise RuntimeError(f"These stay mounted: {', '.join(left)}. Unmount them by hand.")


def _remove_bridge(name: str) -> None:
    if has_bridge(name):
        subprocess.run(["ip", "link", "delete", name], check=True)  # noqa: S607


def _is_below(path: str, directory: Path) -> bool:
    return path.startswith(f"{directory}/")


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
