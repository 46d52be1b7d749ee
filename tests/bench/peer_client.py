"""dagster-ray's client before the same stage as ours: how it launches, and what is counted.

It submits our RayJob, without our Secret, and reads messages and lines as it does by itself: from
Ray's tail of the driver's log. Each launch is a process, whose stdout is the run's in Dagster.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, override

import dagster as dg

from factory.control.clusters import Kubernetes
from factory.control.instance import ensure
from factory.control.kube import rayjob
from factory.control.kube.submission import Submission
from factory.settings import Settings
from tests.cluster.access import Account
from tests.cluster.launching import Launcher
from tests.cluster.reckoning import Client
from tests.cluster.scenes import DRIVER, Theatre
from tests.cluster.stage import Stage
from tests.cluster.under_way import UnderWay

LOOK_SECONDS = 0.5
"""As often as ours looks; it has one setting for all states."""
END_SECONDS = 110.0
SETTLE_SECONDS = 60.0

OPENS = """
from dagster_pipes import PipesDefaultMessageWriter
writer = PipesDefaultMessageWriter()
"""
SAYS = """pipes.log.info(message)
        with open(root + "/told-" + str(os.getpid()), "a") as told:
            print(message, file=told)"""
_RIGHTS = {"apiGroups": ["ray.io"], "resources": ["rayjobs/status"], "verbs": ["get"]}
"""What it takes beyond what the factory does."""
_TERMINAL = {"Complete", "Failed", "ValidationFailed"}


class PeerLauncher(Launcher):
    """The same job, whose op hands the same RayJob to dagster-ray's client."""

    dashboard = ""
    config = ""
    """Of Kubernetes: a kubeconfig."""

    @override
    def _train(self, context: dg.OpExecutionContext) -> None:
        from dagster_ray.kuberay import PipesKubeRayJobClient
        from dagster_ray.kuberay.client import RayJobClient

        PipesKubeRayJobClient(
            client=RayJobClient(kube_config=self.config),
            poll_interval=LOOK_SECONDS,
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
class Elsewhere:
    """Launches, each in a process of its own."""

    launcher: Launcher
    config: Path
    dashboard: str

    @property
    def instance(self) -> dg.DagsterInstance:
        """Dagster's."""
        return self.launcher.instance

    def launch(self, tags: Mapping[str, str] | None = None) -> None:
        """Run to the end; killed where it does not come."""
        log = self.launcher.settings.root.parent / "launch.log"
        with log.open("ab") as file:
            process = subprocess.Popen(self._command(tags), stdout=file, stderr=subprocess.STDOUT)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def command(self) -> list[str]:
        """Does it in a process of its own."""
        return self._command()

    def _command(self, tags: Mapping[str, str] | None = None) -> list[str]:
        given = {
            **json.loads(self.launcher.as_argument()),
            "config": str(self.config),
            "dashboard": self.dashboard,
            "tags": dict(tags or {}),
        }
        return [sys.executable, "-u", "-m", "tests.bench.peer_client", json.dumps(given)]


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
    def launcher(self, root: Path, token: Path) -> Elsewhere:
        config = root.parent / "kubeconfig"
        config.write_text(json.dumps(self._config(token)))
        return Elsewhere(Launcher(*self.launching(root, token)), config, self.dashboard)

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
    role = {"metadata": {"name": "peer"}, "rules": [_RIGHTS]}
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
    given = cast(dict[str, Any], json.loads(argument))
    settings = Settings.model_validate(given["settings"])
    cluster = Kubernetes.model_validate(given["cluster"])
    with ensure(settings) as instance:
        launcher = PeerLauncher(settings, instance, cluster, given["image"])
        launcher.config, launcher.dashboard = given["config"], given["dashboard"]
        launcher.job().execute_in_process(
            instance=instance, raise_on_error=False, tags=given["tags"]
        )


if __name__ == "__main__":
    _main(sys.argv[1])
