"""Many runs at once on one API server: each follower and each driver is a process of its own.

Followers are forks of one process that has imported everything, so that a small machine holds a
hundred of them; but for that they are what Dagster starts for a run, with the factory's own
intervals. All share one Dagster, one namespace, and a dashboard that knows the jobs of every head.
"""

import contextlib
import json
import multiprocessing
import os
import resource
import sys
import time
import traceback
import uuid
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import psutil

from factory.control.clusters import Kubernetes
from factory.control.instance import ensure
from factory.settings import Settings
from tests.cluster import dashboard_log, taken_up
from tests.cluster.access import Account, factory_account
from tests.cluster.api import Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import dashboard
from tests.cluster.launching import OPEN, Launcher
from tests.cluster.nodes import SHAPE, add_node, remove_node
from tests.cluster.played_cluster import played_cluster
from tests.cluster.stage import PORT, Stage, an_address, staged
from tests.control.kube.submissions import IMAGE

POLL_SECONDS = 0.2
"""`FactoryPipesClient` looks so often for messages, if nobody says otherwise."""

ROOMY = {**SHAPE, "cpu": "6400", "memory": "51200Gi", "pods": "1000"}
"""Nodes on which any number of heads takes no worker's place: without gangs they would."""

MESSAGES = 5
LINES = "begun\nends\n"

DRIVER = f"""{OPEN}
with opened as pipes:
    print("begun", flush=True)
    while not os.path.exists(os.environ["FACTORY_ROOT"] + "/go"): time.sleep(0.5)
    for number in range({MESSAGES}):
        pipes.report_custom_message(
            {{"kind": "phase", "name": "said", "detail": f"message {{number}}", "seconds": 0.0}}
        )
    print("ends", flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What came of one run, as its follower tells it."""

    success: bool
    error: str
    messages: Sequence[str]
    """Those that the run's page shows, in order."""
    lines: str
    """The driver's, as they were copied."""
    began: float
    ended: float
    cpu_seconds: float
    peak_mib: float
    """Of the follower's process, what it shares with others included."""

    @property
    def is_whole(self) -> bool:
        """Whether it did well, and nothing that its driver said is lost or doubled."""
        return self.success and self.messages_wrong == 0 and self.lines == LINES

    @property
    def messages_wrong(self) -> int:
        """Messages lost or doubled."""
        expected = [f"message {number}" for number in range(MESSAGES)]
        return sum(abs(self.messages.count(one) - 1) for one in expected)


@dataclass
class ManyRuns:
    """A place for many runs, and those that were begun there."""

    account: Account
    stage: Stage
    settings: Settings
    cluster: Kubernetes
    instance: dg.DagsterInstance
    folder: Path
    pool: ProcessPoolExecutor
    followers: list[Future[Followed]] = field(default_factory=list[Future[Followed]])

    @property
    def launcher(self) -> Launcher:
        """What follows one of them."""
        return Launcher(
            self.settings, self.instance, self.cluster, IMAGE, poll_seconds=POLL_SECONDS
        )

    def begin(self, count: int) -> None:
        """Launch so many, at once."""
        argument, logs = self.launcher.as_argument(), str(self.folder / "followers")
        self.followers += [self.pool.submit(_follow, argument, logs) for _ in range(count)]

    def opened(self) -> int:
        """Drivers that have said something."""
        return len(list(self.stage.root.glob("public/runs/*/messages/000001.jsonl")))

    def go(self) -> None:
        """Let every driver go on to its end."""
        (self.stage.root / "go").touch()

    def close(self) -> None:
        """None of them goes on, whatever has become of it."""
        for follower in self.followers:
            follower.cancel()
        for run in self.instance.get_runs():
            if not run.is_finished:
                self.instance.report_run_canceling(run)

    def left(self) -> list[str]:
        """Objects of runs that are still there now."""
        found: list[Object] = []
        for path in taken_up.KINDS:
            found += self.account.plane.admin.items(
                path.format(f"namespaces/{self.account.namespace}")
            )
        return [one["metadata"]["name"] for one in found if one.get("type", "Opaque") == "Opaque"]

    def own_mib(self) -> list[float]:
        """Memory of each follower that it shares with no other, now."""
        found: list[float] = []
        for child in multiprocessing_children():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(child.memory_full_info().uss / 2**20)
        return found


def multiprocessing_children() -> list[psutil.Process]:
    """The followers: forks of the one process that has imported everything."""
    servers = [
        one
        for one in psutil.Process().children()
        if any("multiprocessing.forkserver" in word for word in one.cmdline())
    ]
    return [child for server in servers for child in server.children()]


@contextlib.contextmanager
def many_runs(
    plane: ControlPlane, folder: Path, *, count: int, code: str = DRIVER
) -> Generator[ManyRuns]:
    """A place for so many runs at once on that cluster, until the end of the block."""
    namespace = f"many-{uuid.uuid4().hex[:8]}"
    plane.admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    names = [f"node-{uuid.uuid4().hex[:6]}" for _ in range(count)]
    for name in names:
        add_node(plane.admin, name, ROOMY)
    (folder / "namespace").mkdir()
    paths = {"FACTORY_ROOT": "namespace", "FACTORY_STATE": "state", "DAGSTER_HOME": "home"}
    settings = Settings.from_environment({key: str(folder / at) for key, at in paths.items()})
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.cluster.follower_imports"])
    account = factory_account(plane, namespace)
    try:
        with (
            ensure(settings) as instance,
            an_address() as address,
            dashboard(address, port=PORT) as told,
            _patient(count),
            ProcessPoolExecutor(count, context) as pool,
        ):
            told.stopping = set()
            looks = 0.1 if count <= 10 else 0.5
            stage = Stage(plane.admin, namespace, code, told, settings.root, look_seconds=looks)
            with staged(stage):
                cluster = _cluster_of(account, folder, count)
                made = ManyRuns(account, stage, settings, cluster, instance, folder, pool)
                try:
                    yield made
                finally:
                    made.close()
    finally:
        for name in names:
            remove_node(plane.admin, name)
        plane.admin.delete(f"/api/v1/namespaces/{namespace}")


@contextlib.contextmanager
def _patient(count: int) -> Generator[None]:
    """A dashboard that sends so many logs looks for new bytes of each less often."""
    before = dashboard_log.LOOK_SECONDS
    dashboard_log.LOOK_SECONDS = max(before, count / 400)
    try:
        yield
    finally:
        dashboard_log.LOOK_SECONDS = before


def _cluster_of(account: Account, folder: Path, count: int) -> Kubernetes:
    nodes = {"count": count, "cpus": 60, "memory_gib": 500, "network_devices": None}
    return played_cluster(account, folder / "token", nodes=nodes, multi_node_without_gang=False)


def _follow(argument: str, logs: str) -> Followed:
    """One launch, to its end, in this process."""
    began = time.time()
    with (
        Path(f"{logs}-{os.getpid()}.log").open("a", encoding="utf-8") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        os.dup2(log.fileno(), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        os.dup2(log.fileno(), 2)
        success, error, messages, lines = _launched(argument)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Followed(
        success=success,
        error=error,
        messages=messages,
        lines=lines,
        began=began,
        ended=time.time(),
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_mib=used.ru_maxrss / 1024,
    )


def _launched(argument: str) -> tuple[bool, str, list[str], str]:
    given = json.loads(argument)
    settings = Settings.model_validate(given.pop("settings"))
    cluster = Kubernetes.model_validate(given.pop("cluster"))
    try:
        with ensure(settings) as instance:
            launcher = Launcher(settings, instance, cluster, **given, poll_seconds=POLL_SECONDS)
            outcome = launcher.launch()
            said = [line for line in outcome.lines if line.startswith("said: ")]
            messages = [line.removeprefix("said: ").rpartition(" (")[0] for line in said]
            error = "" if outcome.result.success else outcome.error
            return outcome.result.success, error, messages, outcome.driver_log
    except Exception:  # the others go on, and it is told with them
        return False, traceback.format_exc(), [], ""
