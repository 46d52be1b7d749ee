"""One launch on a cluster of the tests, with all that a fault may take hold of.

The factory asks the API server through a gateway behind a door; the dashboard has an address of its
own, so that only the API is faulty. What every launch has is in `under_way`.
"""

import contextlib
import signal
import subprocess
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import dagster as dg

from factory.control.clusters import Kubernetes
from factory.settings import Settings
from tests.cluster.access import Account, factory_account
from tests.cluster.api import Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import Dashboard, dashboard
from tests.cluster.gateway import Door, Gateway, gateway
from tests.cluster.launching import Launcher
from tests.cluster.nodes import add_node, remove_node
from tests.cluster.played_cluster import played_cluster
from tests.cluster.stage import PORT, Stage, an_address, staged
from tests.cluster.under_way import BEFORE, NUMBERS, Launches, UnderWay
from tests.control.kube.submissions import IMAGE

DRIVER = f"""
import fcntl, os, signal, sys, time
from dagster_pipes import open_dagster_pipes
{{opens}}
root = os.environ["FACTORY_ROOT"]
alive = open(root + "/alive", "w")
try:
    fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    open(root + "/two-at-once", "w").close()
opened = open_dagster_pipes(message_writer=writer)
def end(number, _):
    raise SystemExit(75 if number == signal.SIGTERM else 1)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGUSR1, end)
with opened as pipes, open(root + "/said-" + str(os.getpid()), "a", buffering=1) as said:
    for number in range({NUMBERS}):
        line = "line %d of %d" % (number, os.getpid())
        print(line, flush=True)
        said.write(line + "\\n")
        message = "message %d of %d" % (number, os.getpid())
        {{says}}
        while number == {BEFORE} and not os.path.exists(root + "/go"):
            time.sleep(0.02)
"""
"""Where it has `opens`, the writer of Pipes' messages is made; where it `says`, one is sent."""

OPENS = """
from pathlib import Path
from dagster_pipes import PipesDefaultContextLoader, PipesEnvVarParamsLoader
from factory.errors import Superseded
from factory.namespace import Namespace
from factory.namespace.attempts import Attempt
from factory.training.messages import NamespaceMessageWriter
params = PipesEnvVarParamsLoader().load_context_params()
with PipesDefaultContextLoader().load_context(params) as context:
    launch = context["extras"]["launch"]
namespace = Namespace(Path(os.environ["FACTORY_ROOT"]))
attempt = Attempt(namespace.open_run(launch["classification"], launch["run_id"]), launch["attempt"])
try:
    attempt.claim()
except Superseded:
    os._exit(4)
writer = NamespaceMessageWriter(interval_seconds=0.0, check=attempt.check)
"""
"""Like the real one, it is kept out of an attempt that has had a driver."""

SAYS = """pipes.report_custom_message(
            {"kind": "phase", "name": "said", "detail": message, "seconds": 0.0}
        )"""


@dataclass(kw_only=True)
class Scene(UnderWay):
    """One launch before a stage."""

    plane: ControlPlane
    account: Account
    stage: Stage
    gateway: Gateway
    door: Door
    token: Path

    beheaded: set[str] = field(default_factory=set[str])
    """The names of drivers whose head was told to go while they ended in order."""

    def has_ended(self) -> bool:
        """Its driver has ended."""
        return bool(self.stage.drivers) and self.stage.driver().poll() is not None

    def drivers(self) -> int:
        """How many were started."""
        return len(self.stage.drivers)

    def died_with_their_heads(self) -> set[str]:
        """The names of those that the stage has killed, and of the beheaded."""
        ended = self.stage.drivers.values()
        return self.beheaded | {str(one.pid) for one in ended if one.poll() == -signal.SIGKILL}


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
        self.told.jobs.clear()
        self.told.stopped.clear()
        self.told.stopping = set()
        with staged(self.stage(folder / "namespace")) as stage:
            scene = Scene(
                plane=self.account.plane,
                account=self.account,
                stage=stage,
                admin=stage.admin,
                namespace=stage.namespace,
                root=stage.root,
                launcher=self.launcher(folder / "namespace", token),
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

    def stage(self, root: Path) -> Stage:
        """Plays the pods and the driver of a scene whose namespace is there."""
        admin, namespace = self.account.plane.admin, self.account.namespace
        code = DRIVER.format(opens=OPENS, says=SAYS)
        stage = Stage(admin, namespace, code, self.told, root)
        stage.play = _waits_for_its_secret
        return stage

    def launcher(self, root: Path, token: Path) -> Launches:
        """The client of a scene."""
        return Launcher(*self.launching(root, token), grace_seconds=5.0)

    def launching(
        self, root: Path, token: Path
    ) -> tuple[Settings, dg.DagsterInstance, Kubernetes, str]:
        """Settings, Dagster's instance, cluster and image."""
        settings = Settings.from_environment(
            {
                "FACTORY_ROOT": str(root),
                "FACTORY_STATE": str(self.folder / "state"),
                "DAGSTER_HOME": str(self.folder / "home"),
            }
        )
        cluster = played_cluster(
            self.account,
            token,
            api_server=f"https://127.0.0.1:{self.door.port}",
            ca={"file": str(self.gateway.told.ca)},
            dashboard={
                "route": "template",
                "template": f"http://{self.told.address}:{PORT}/{{cluster}}",
            },
        )
        return settings, self.instance, cluster, IMAGE


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
