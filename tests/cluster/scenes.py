"""One launch on a cluster of the tests, with all that a fault may take hold of.

The factory asks the API server through a gateway behind a door; the dashboard has an address of its
own, so that only the API is faulty. The driver says numbered lines and messages, a few before it
may go on and the rest at once: what it said lies in the namespace, whatever anybody has read of it.
"""

import contextlib
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import dagster as dg

from factory.control.kube.handles import ADOPTS
from factory.settings import Settings
from tests.cluster.access import Account, factory_account
from tests.cluster.api import Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import Dashboard, dashboard
from tests.cluster.gateway import Door, Gateway, gateway
from tests.cluster.launching import Launcher, Outcome, until
from tests.cluster.nodes import add_node, remove_node
from tests.cluster.stage import PORT, Stage, an_address, staged
from tests.control.a_cluster import a_cluster
from tests.control.kube.submissions import IMAGE

NUMBERS, BEFORE = 24, 8
PATIENCE_SECONDS = 120.0

DRIVER = f"""
import fcntl, os, signal, sys, time
from dagster_pipes import open_dagster_pipes
from factory.training.messages import NamespaceMessageWriter
root = os.environ["FACTORY_ROOT"]
alive = open(root + "/alive", "w")
try:
    fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    open(root + "/two-at-once", "w").close()
opened = open_dagster_pipes(message_writer=NamespaceMessageWriter(interval_seconds=0.0))
def end(number, _):
    raise SystemExit(75 if number == signal.SIGTERM else 1)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGUSR1, end)
with opened as pipes, open(f"{{root}}/said-{{os.getpid()}}", "a", buffering=1) as said:
    for number in range({NUMBERS}):
        line = f"line {{number}} of {{os.getpid()}}"
        print(line, flush=True)
        said.write(line + "\\n")
        message = f"message {{number}} of {{os.getpid()}}"
        pipes.report_custom_message(
            {{"kind": "phase", "name": "said", "detail": message, "seconds": 0.0}}
        )
        while number == {BEFORE} and not os.path.exists(root + "/go"):
            time.sleep(0.02)
"""


@dataclass
class Scene:
    """One launch, from before it begins to its end."""

    plane: ControlPlane
    account: Account
    stage: Stage
    launcher: Launcher
    gateway: Gateway
    door: Door
    token: Path
    random: Random
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _process: subprocess.Popen[bytes] | None = None
    _before: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._before = frozenset(run.run_id for run in self.instance.get_runs())

    @property
    def instance(self) -> dg.DagsterInstance:
        """Dagster's."""
        return self.launcher.instance

    def launch(self, *, adopts: str = "") -> None:
        """Begin, or take up what another process has left."""
        tags = {ADOPTS: adopts} if adopts else {}
        thread = threading.Thread(target=lambda: self.outcomes.append(self.launcher.launch(tags)))
        self._threads.append(thread)
        thread.start()

    def launch_elsewhere(self) -> subprocess.Popen[bytes]:
        """Begin in a process that can be killed."""
        command = [sys.executable, "-m", "tests.cluster.launching", self.launcher.as_argument()]
        log = (self.stage.root.parent / "elsewhere.log").open("wb")
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        return self._process

    def runs(self) -> list[dg.DagsterRun]:
        """The Dagster runs of this scene, the newest first."""
        return [run for run in self.instance.get_runs() if run.run_id not in self._before]

    def end(self) -> Outcome | None:
        """What came of it; nothing where it does not end."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        return self.outcomes[-1] if self.outcomes else None

    # Moments.

    def until(self, look: Callable[[], object], seconds: float = 90.0) -> None:
        """Wait for a moment of the launch, which may be over before."""
        until(lambda: look() or self._is_over(), seconds)

    def submitted(self) -> bool:
        """Its RayJob is there."""
        return bool(self.stage.rayjobs())

    def has_pods(self) -> bool:
        """Its pods are there."""
        return len(self.stage.pods()) == 2

    def speaks(self) -> bool:
        """Its driver has said all that it may say before it goes on."""
        return any(len(lines) > BEFORE for lines in self.said())

    def has_ended(self) -> bool:
        """Its driver has ended."""
        return bool(self.stage.drivers) and self.stage.driver().poll() is not None

    def is_complete(self) -> bool:
        """KubeRay says so."""
        return any(
            job.get("status", {}).get("jobDeploymentStatus") == "Complete"
            for job in self.stage.rayjobs()
        )

    def said(self) -> list[list[str]]:
        """What each driver has printed."""
        return [path.read_text().splitlines() for path in self.stage.root.glob("said-*")]

    def go(self) -> None:
        """Let the driver go on to its end."""
        (self.stage.root / "go").touch()

    def pause(self, shortest: float, longest: float) -> None:
        """Some time."""
        time.sleep(self.random.uniform(shortest, longest))

    def _is_over(self) -> bool:
        threads = bool(self._threads) and not any(one.is_alive() for one in self._threads)
        return threads and (self._process is None or self._process.poll() is not None)

    def close(self) -> None:
        """Nothing of it goes on."""
        self.go()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for run in self.runs():
            if not run.is_finished:
                self.instance.report_run_canceling(run)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)


@dataclass
class Theatre:
    """A cluster with two nodes, one namespace and Dagster's own storage, for many scenes."""

    account: Account
    instance: dg.DagsterInstance
    folder: Path
    told: Dashboard
    """One for all: the API server keeps its connections to it."""
    gateway: Gateway
    door: Door
    scenes: int = 0

    @contextlib.contextmanager
    def scene(self, random: Random) -> Generator[Scene]:
        """One launch that has not begun yet."""
        self.scenes += 1
        folder = self.folder / f"scene-{self.scenes}"
        (folder / "namespace").mkdir(parents=True)
        token = folder / "token"
        token.write_text(self.account.token())
        self.told.jobs.clear()
        self.told.stopped.clear()
        self.told.stopping = set()
        with staged(self._stage(folder)) as stage:
            scene = Scene(
                plane=self.account.plane,
                account=self.account,
                stage=stage,
                launcher=self._launcher(folder, token),
                gateway=self.gateway,
                door=self.door,
                token=token,
                random=random,
            )
            try:
                yield scene
            finally:
                self.gateway.rules.clear()
                self.gateway.answered.clear()
                scene.close()

    def _stage(self, folder: Path) -> Stage:
        admin, namespace = self.account.plane.admin, self.account.namespace
        stage = Stage(admin, namespace, DRIVER, self.told, folder / "namespace")
        stage.play = _waits_for_its_secret
        return stage

    def _launcher(self, folder: Path, token: Path) -> Launcher:
        settings = Settings.from_environment(
            {
                "FACTORY_ROOT": str(folder / "namespace"),
                "FACTORY_STATE": str(self.folder / "state"),
                "DAGSTER_HOME": str(self.folder / "home"),
            }
        )
        cluster = a_cluster(
            api_server=f"https://127.0.0.1:{self.door.port}",
            ca={"file": str(self.gateway.told.ca)},
            token={"file": str(token)},
            namespace=self.account.namespace,
            scheduler="default",
            multi_node_without_gang=True,
            nodes={"count": 2, "cpus": 60, "memory_gib": 500, "network_devices": None},
            tree={
                "public": {"claim": None, "host_path": "/srv/public"},
                "private": {"claim": None, "host_path": "/srv/private"},
            },
            pod_security="privileged",
            queues={"training": {"priority_class": None}},
            grace_seconds=5,
            dashboard={
                "route": "template",
                "template": f"http://{self.told.address}:{PORT}/{{cluster}}",
            },
        )
        return Launcher(settings, self.instance, cluster, IMAGE, grace_seconds=5.0)


@contextlib.contextmanager
def theatre(plane: ControlPlane, instance: dg.DagsterInstance, folder: Path) -> Generator[Theatre]:
    """A namespace and nodes of its own on that cluster, until the end of the block.

    `instance` is Dagster's, whose home is `home` in that folder.
    """
    namespace = f"faults-{uuid.uuid4().hex[:8]}"
    plane.admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    names = [f"node-{uuid.uuid4().hex[:6]}" for _ in range(2)]
    for name in names:
        add_node(plane.admin, name)
    (folder / "gateway").mkdir()
    try:
        with (
            an_address() as address,
            dashboard(address, port=PORT) as told,
            gateway(folder / "gateway", plane.address, plane.ca) as (made, door),
        ):
            account = factory_account(plane, namespace)
            yield Theatre(account, instance, folder, told, made, door)
    finally:
        for name in names:
            remove_node(plane.admin, name)
        plane.admin.delete(f"/api/v1/namespaces/{namespace}")


def _waits_for_its_secret(stage: Stage, pod: Object) -> bool:
    """No kubelet starts a container before the Secret is there that it refers to."""
    if pod["status"]["phase"] != "Pending":
        return False
    secrets = stage.admin.items(f"/api/v1/namespaces/{stage.namespace}/secrets")
    return not any(one["type"] == "Opaque" for one in secrets)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, as a lack of memory would."""
    process.send_signal(signal.SIGKILL)
    process.wait()
