"""dagster-ray's client before the same stage as ours: how it launches, and what is counted.

It submits our RayJob, without our Secret, and reads messages and lines as it does by itself: from
Ray's tail of the driver's log. The lines are the step's stdout, which Dagster keeps.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, override

import dagster as dg

from factory.control.clusters import Kubernetes
from factory.control.instance import ensure
from factory.control.kube import rayjob
from factory.control.kube.submission import Submission
from factory.namespace import Namespace
from factory.settings import Settings
from tests.cluster.access import Account
from tests.cluster.hurried import LOOK_SECONDS
from tests.cluster.launching import Launcher
from tests.cluster.reckoning import Client
from tests.cluster.scenes import DRIVER, Theatre
from tests.cluster.stage import Stage
from tests.cluster.under_way import UnderWay

SETTLE_SECONDS = 60.0

OPENS = """
from dagster_pipes import PipesDefaultMessageWriter
writer = PipesDefaultMessageWriter()
"""
SAYS = """pipes.log.info(message)
        with open(root + "/told-" + str(os.getpid()), "a") as told:
            print(message, file=told)"""
_RIGHTS = [
    {"apiGroups": ["ray.io"], "resources": ["rayjobs/status"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
]
"""What it takes beyond what the factory does."""
_TERMINAL = {"Complete", "Failed", "ValidationFailed"}


@dataclass
class PeerLauncher(Launcher):
    """The same job, whose op hands the same RayJob to dagster-ray's client."""

    config: str = ""
    """Of the Kubernetes client: a kubeconfig."""
    dashboard: str = ""

    @override
    def as_argument(self) -> str:
        given: dict[str, Any] = json.loads(super().as_argument())
        return json.dumps(given | {"config": self.config, "dashboard": self.dashboard})

    @override
    def command(self) -> list[str]:
        return [sys.executable, "-u", "-m", "tests.bench.peer_client", self.as_argument()]

    @override
    def _train(self, context: dg.OpExecutionContext) -> None:
        from dagster_ray.kuberay import PipesKubeRayJobClient
        from dagster_ray.kuberay.client import RayJobClient

        self.run = Namespace(self.settings.root).open_run("public", context.run_id)
        PipesKubeRayJobClient(
            client=RayJobClient(kube_config=self.config),
            poll_interval=LOOK_SECONDS,  # as ours; it has one setting for all states
            address=self.dashboard,
        ).run(context=context, ray_job=self._rayjob(context.run_id))

    def _rayjob(self, run_id: str) -> dict[str, Any]:
        submission = Submission(
            launch=self._launch_of(run_id),
            cluster=self.cluster,
            root_run_id=run_id,
            owner="peer",
            deployment=self.settings.deployment,
        )
        made = rayjob.rayjob(submission)
        made["metadata"] = {"namespace": self.cluster.namespace}
        del made["spec"]["rayClusterSpec"]["authOptions"]
        return made


@dataclass
class PeerTheatre(Theatre):
    """The same theatre for runs of dagster-ray."""

    dashboard: str = ""
    """Where Ray's own client finds the jobs."""

    @override
    def stage(self, root: Path) -> Stage:
        code = DRIVER.format(opens=OPENS, says=SAYS)
        return Stage(self.account.plane.admin, self.account.namespace, code, self.told, root)

    @override
    def launcher(self, root: Path, token: Path) -> PeerLauncher:
        config = root.parent / "kubeconfig"
        config.write_text(json.dumps(self._config(token)))
        launching = self.launching(root, token)
        return PeerLauncher(*launching, config=str(config), dashboard=self.dashboard)

    def _config(self, token: Path) -> dict[str, Any]:
        """A kubeconfig by which the Kubernetes client reads the token anew for each request."""
        version = "client.authentication.k8s.io/v1"
        status = '{"token":"%s","expirationTimestamp":"2000-01-01T00:00:00Z"}'
        said = f'{{"kind":"ExecCredential","apiVersion":"{version}","status":{status}}}'
        script = f"printf '{said}' \"$(cat {token})\""
        run = {"apiVersion": version, "command": "sh", "args": ["-c", script]}
        server = {
            "server": f"https://127.0.0.1:{self.door.port}",
            "certificate-authority": str(self.gateway.told.ca),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "played", "cluster": server}],
            "users": [{"name": "factory", "user": {"exec": run}}],
            "contexts": [{"name": "one", "context": {"cluster": "played", "user": "factory"}}],
            "current-context": "one",
        }


def grant(account: Account) -> None:
    """The rights that dagster-ray's client takes and ours does not."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{account.namespace}"
    role = {"metadata": {"name": "peer"}, "rules": _RIGHTS}
    account.plane.admin.create(f"{path}/roles", role)
    who = {"kind": "ServiceAccount", "name": "factory", "namespace": account.namespace}
    to = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "peer"}
    binding = {"metadata": {"name": "peer"}, "roleRef": to, "subjects": [who]}
    account.plane.admin.create(f"{path}/rolebindings", binding)


def settle(scene: UnderWay) -> None:
    """What KubeRay ends by itself has ended, also where nobody follows it any more."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while _left(scene) and time.monotonic() < deadline:
        time.sleep(0.2)


def clear(scene: UnderWay) -> None:
    """Delete all that is left, so that the next scene is like the first."""
    path = f"/apis/ray.io/v1/namespaces/{scene.namespace}/rayjobs"
    deadline = time.monotonic() + SETTLE_SECONDS
    while there := scene.rayjobs() + scene.pods():
        for job in scene.rayjobs():
            if "deletionTimestamp" not in job["metadata"]:
                scene.admin.delete(f"{path}/{job['metadata']['name']}")
        assert time.monotonic() < deadline, f"these stay: {there}"
        time.sleep(0.2)


def _sent(scene: UnderWay) -> Counter[str]:
    return Counter(
        line for path in scene.root.glob("told-*") for line in path.read_text().split("\n") if line
    )


def _logs(scene: UnderWay) -> Iterator[Path]:
    storage = Path(scene.instance.storage_directory())
    for run in scene.runs():
        yield from (storage / run.run_id / "compute_logs").glob("*.out")


def _left(scene: UnderWay) -> list[str]:
    """RayJobs that go on: its client deletes none, and KubeRay removes the rest of those ended."""
    return [
        job["metadata"]["name"]
        for job in scene.rayjobs()
        if job.get("status", {}).get("jobDeploymentStatus") not in _TERMINAL
    ]


DAGSTER_RAY = Client(
    attempts=lambda _: 1,
    sent=_sent,
    shown=r"(message \d+ of \d+)$",
    logs=_logs,
    left=_left,
)


def _main(argument: str) -> None:
    given = json.loads(argument)
    settings = Settings.model_validate(given.pop("settings"))
    cluster = Kubernetes.model_validate(given.pop("cluster"))
    with ensure(settings) as instance:
        PeerLauncher(settings, instance, cluster, **given).launch()


if __name__ == "__main__":
    _main(sys.argv[1])
