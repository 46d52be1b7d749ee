"""KAI on a cluster of the tests: its programs, its resources, and queues as the factory wants them.

The programs are not of this project. A site has them in the images of a release of KAI; the
environment variable names a folder that holds the five, and the files that define KAI's resources
in its folder `crds`. What runs on such a cluster is in `gangs`.
"""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from tests.cluster.api import Object
from tests.cluster.control_plane import HOST, ControlPlane, running, says_it_is_ready
from tests.cluster.daemons import Daemon

VARIABLE = "FACTORY_KAI_BIN"
PROGRAMS = ("podgroupcontroller", "queuecontroller", "podgrouper", "binder", "scheduler")

SERVER_FLAGS = ("--feature-gates=DynamicResourceAllocation=true", "--runtime-config=api/all=true")
"""KAI's scheduler watches resources that a server does not serve by itself."""

NAMESPACES = ("kai-scheduler", "kai-resource-reservation")
PARENT = "factory"
GPUS = 16
"""Of all nodes, and so the quota of training."""

PRIORITIES = {"urgent": 90, "training": 80, "smoke": 50, "probe": 10}
"""PriorityClasses. Below 100 KAI may take a place away, unless a run says otherwise."""

QUEUES = "/apis/scheduling.run.ai/v2/queues"


class NoKai(Exception):
    """There is no KAI to test with."""


@contextlib.contextmanager
def running_kai(name: str) -> Generator[ControlPlane]:
    """A cluster of that name with KAI; nothing is left afterwards.

    Raises:
        NoKai: the variable is not set, or a program or file is missing.
        NoGo: as `running`.
        DaemonDied: as `running`.
    """
    folder = programs()
    with running(name, server_flags=SERVER_FLAGS) as plane:
        plane.install_crds(sorted((folder / "crds").glob("*.yaml")))
        for one in NAMESPACES:
            plane.admin.create("/api/v1/namespaces", {"metadata": {"name": one}})
        _make_queues(plane)
        _start(plane, folder)
        yield plane


def programs() -> Path:
    """The folder with KAI's programs and resources.

    Raises:
        NoKai: as `running_kai`.
    """
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise NoKai(f"{VARIABLE} names no folder with KAI's programs, which are not built here")
    folder = Path(named)
    missing = [one for one in PROGRAMS if not os.access(folder / one, os.X_OK)]
    missing += [] if list((folder / "crds").glob("*.yaml")) else ["crds/*.yaml"]
    if missing:
        raise NoKai(f"{VARIABLE}={named} lacks {', '.join(missing)}")
    return folder


def _make_queues(plane: ControlPlane) -> None:
    """Training may have everything; the others what it leaves, and give it back."""
    for name, value in PRIORITIES.items():
        body = {"metadata": {"name": name}, "value": value}
        plane.admin.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    plane.admin.create(QUEUES, _queue(PARENT, gpus=-1))
    for name, gpus in (("training", GPUS), ("smoke", 0), ("probe", 0)):
        plane.admin.create(QUEUES, _queue(name, gpus, PARENT))


def _queue(name: str, gpus: int, parent: str | None = None) -> Object:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": unlimited, "memory": unlimited, "gpu": {**unlimited, "quota": gpus}}
    spec: Object = {"resources": resources} | ({"parentQueue": parent} if parent else {})
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _start(plane: ControlPlane, folder: Path) -> None:
    """Start all of them, and wait until each answers."""
    asked: list[tuple[Daemon, int, str]] = []
    for program in PROGRAMS:
        metrics, probe = plane.claims.port(), plane.claims.port()
        flags = _flags(program, f"{HOST}:{metrics}", probe)
        daemon = plane.run(folder / program, *flags, KUBECONFIG=str(plane.kubeconfig))
        ready = program in ("podgroupcontroller", "podgrouper")  # the others do not say so
        asked.append((daemon, probe, "/readyz") if ready else (daemon, metrics, "/metrics"))
    for daemon, port, path in asked:
        daemon.wait_until(lambda port=port, path=path: says_it_is_ready(port, path))


def _flags(program: str, metrics: str, probe: int) -> list[str]:
    """What to start it with: where it tells of itself, and a port for what else it serves."""
    if program == "scheduler":
        period = "--schedule-period=300ms"
        return [f"--listen-address={metrics}", f"--plugin-server-port={probe}", period]
    if program == "queuecontroller":
        return [f"--metrics-listen-address={metrics}", "--enable-webhook=false"]
    flags = [f"--metrics-bind-address={metrics}", f"--health-probe-bind-address={HOST}:{probe}"]
    webhook = ["--enable-podgroup-webhook=false"] if program == "podgroupcontroller" else []
    return flags + webhook
