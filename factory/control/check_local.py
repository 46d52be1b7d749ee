"""`factory cluster check` of a cluster of kind `local`: what this machine gives to a run."""

import os
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from factory.control.checklist import Line, failed, note, ok
from factory.control.clusters import Local
from factory.control.local import LEAST_FREE_BYTES
from factory.control.sessions import SOCKET_ROOT
from factory.settings import Settings

LEAST_MEMORY_BYTES = 4 * 2**30
"""Ray's processes, a driver and one small rank."""

_NVIDIA = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What was found on this machine."""

    ray: str | None
    cpus: int
    memory_bytes: int
    free_bytes: int
    """For the files of a session, below `SOCKET_ROOT`."""

    has_gpu_driver: bool
    state_is_writable: bool
    state: Path
    image: str | None


def this_machine(settings: Settings) -> Machine:
    """Look at this machine."""
    import psutil

    existing = next(path for path in (settings.state, *settings.state.parents) if path.exists())
    return Machine(
        ray=_ray(),
        cpus=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        free_bytes=shutil.disk_usage(SOCKET_ROOT).free,
        has_gpu_driver=_NVIDIA.exists(),
        state_is_writable=existing.is_dir() and os.access(existing, os.W_OK),
        state=settings.state,
        image=settings.image,
    )


def local_lines(cluster: Local, machine: Machine) -> list[Line]:
    """What follows for runs of that cluster."""
    return [
        ok("address", "this machine; each run starts a Ray cluster of its own"),
        _ray_line(machine),
        _profile(cluster, machine),
        _cpus(cluster, machine),
        _memory(machine),
        _disk(machine),
        _state(machine),
        ok("image", machine.image or "none: runs use the working tree, and their record says so"),
    ]


def _ray_line(machine: Machine) -> Line:
    if machine.ray is None:
        return failed("Ray", "is not installed", "Run `make`, which installs the lock.")
    return ok("Ray", machine.ray)


def _profile(cluster: Local, machine: Machine) -> Line:
    if cluster.profile == "cpu" and machine.has_gpu_driver:
        return note(
            "profile",
            "cpu, and this machine has an NVIDIA driver",
            "Where CUDA finds a GPU the profile refuses to start: set CUDA_VISIBLE_DEVICES= .",
        )
    if cluster.profile == "h100" and not machine.has_gpu_driver:
        return failed(
            "profile",
            "h100, and this machine has no NVIDIA driver",
            f"Install the driver, or write `profile: cpu` in definitions/clusters/"
            f"{cluster.name}.yaml.",
        )
    return ok("profile", cluster.profile)


def _cpus(cluster: Local, machine: Machine) -> Line:
    counted = cluster.num_cpus
    if counted is not None and counted > machine.cpus:
        return note(
            "CPUs",
            f"{machine.cpus}, and the file has num_cpus {counted}",
            f"Ranks will share CPUs; write at most {machine.cpus}.",
        )
    return ok("CPUs", f"{counted or machine.cpus} of {machine.cpus}")


def _memory(machine: Machine) -> Line:
    found = f"{machine.memory_bytes / 2**30:.1f} GiB"
    if machine.memory_bytes < LEAST_MEMORY_BYTES:
        least = f"{LEAST_MEMORY_BYTES / 2**30:.0f} GiB"
        return note("memory", found, f"Below {least} even the debug recipe may not fit.")
    return ok("memory", found)


def _disk(machine: Machine) -> Line:
    found = f"{machine.free_bytes / 2**30:.1f} GiB free in {SOCKET_ROOT}"
    if machine.free_bytes < LEAST_FREE_BYTES:
        least = f"{LEAST_FREE_BYTES / 2**30:.0f} GiB"
        return failed("disk", found, f"Make room: Ray needs {least} there to start.")
    return ok("disk", found)


def _state(machine: Machine) -> Line:
    if not machine.state_is_writable:
        found = f"{machine.state} cannot be written"
        return failed("state", found, "Let FACTORY_STATE name a directory that can.")
    return ok("state", str(machine.state))


def _ray() -> str | None:
    try:
        return version("ray")
    except PackageNotFoundError:
        return None
