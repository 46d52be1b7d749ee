"""From a submission to its first message: the factory's client, and the plainest one there can be.

Each is called in a process of its own, as an op of a Dagster run. The plain one has its manifests,
its connection and its eyes on the file ready before its clock begins; then it posts both, and looks
for the first chunk of messages a hundred times a second, while a watch shows it the RayJob.
"""

import contextlib
import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, override

import dagster as dg

from factory.control.clusters import Kubernetes
from factory.control.instance import ensure
from factory.control.kube.api import Api, Json
from factory.control.kube.chain import root_of
from factory.control.kube.ownership import hand_over
from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.submission import Submission
from factory.control.messages import NamespaceMessageReader
from factory.control.owner import owner
from factory.control.pipes import FactoryPipesClient
from factory.namespace import Namespace
from factory.settings import Settings
from tests.cluster.access import ACCOUNT
from tests.cluster.api import Api as Admin
from tests.cluster.launching import STEP, Launcher
from tests.cluster.many_runs import POLL_SECONDS

LOOK_SECONDS = 0.01
PATIENCE_SECONDS = 120.0
RAY_TOKEN = "r" * 43


@dataclass
class Clock:
    """Seconds since the epoch: the call that submits, and the first message seen."""

    began: float = 0.0
    posted: float = 0.0
    """When the RayJob was."""
    seen: float = 0.0
    written: float = 0.0
    """When the driver had put it down."""

    def note(self, directory: Path) -> None:
        """It is seen now."""
        if not self.seen:
            self.seen = time.time()
            self.written = (directory / "000001.jsonl").stat().st_mtime


def ours(argument: str) -> Clock:
    """One run followed by the factory's client, to its end."""
    clock = Clock()
    with _launcher(Launcher, argument) as launcher, _timed(clock):
        outcome = launcher.launch()
        assert outcome.result.success, outcome.error
    return clock


def plain(argument: str) -> Clock:
    """One run followed by the plain client, up to its first message."""
    with _launcher(Plain, argument) as launcher:
        result = launcher.job().execute_in_process(instance=launcher.instance)
        assert result.success
        assert isinstance(launcher, Plain)
        return launcher.clock


def let_watch(admin: Admin, namespace: str) -> None:
    """The plain client watches its RayJob, and the factory's token need not be allowed that."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["watch"]}
    admin.create(f"{path}/roles", {"metadata": {"name": "plain"}, "rules": [rule]})
    who = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    to = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "plain"}
    binding = {"metadata": {"name": "plain"}, "roleRef": to, "subjects": [who]}
    admin.create(f"{path}/rolebindings", binding)


@dataclass
class Plain(Launcher):
    """Posts the same objects as the factory, and watches."""

    clock: Clock = None  # type: ignore[assignment]  made where it begins

    @override
    def _train(self, context: dg.OpExecutionContext) -> None:
        self.clock = Clock()
        launch = self._launch_of(context.run_id)
        run = Namespace(self.settings.root).open_run(launch.classification, launch.run_id)
        reader = NamespaceMessageReader(run, context.log, root=Path(self.cluster.tree.path))
        with dg.open_pipes_session(
            context=context,
            context_injector=dg.PipesEnvContextInjector(),
            message_reader=reader,
            extras={"launch": launch.model_dump(mode="json")},
        ) as session:
            submission = Submission(
                launch=launch,
                cluster=self.cluster,
                root_run_id=root_of(self.instance, context.run),
                owner=owner(self.instance),
                deployment=self.settings.deployment,
                step_key=STEP,
            )
            submission = replace(submission, environment=session.get_bootstrap_env_vars())
            directory = run.path / "messages"
            hand_over(run, self.cluster)
            with _Server(self.cluster) as server:
                self._follow(server, submission, directory)
            reader.finish(PATIENCE_SECONDS)
        assert reader.closed

    def _follow(self, server: "_Server", submission: Submission, directory: Path) -> None:
        namespace = submission.cluster.namespace
        jobs = f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"
        first = directory / "000001.jsonl"
        made = rayjob(submission), secret(submission, RAY_TOKEN)
        self.clock.began = time.time()
        server.post(f"/api/v1/namespaces/{namespace}/secrets", made[1])
        self.clock.posted = time.time()
        server.post(jobs, made[0])
        server.watch(f"{jobs}?watch=1&fieldSelector=metadata.name={submission.name}")
        while not first.exists():
            if time.time() - self.clock.began > PATIENCE_SECONDS:
                raise TimeoutError(f"no message; the RayJob is {server.last}")
            time.sleep(LOOK_SECONDS)
        first.read_bytes()
        self.clock.note(directory)


class _Server:
    """The API server over one connection, and another for the watch."""

    def __init__(self, cluster: Kubernetes) -> None:
        ca, token = cluster.ca, cluster.token.file
        assert ca is not None
        assert token is not None
        self._context = ssl.create_default_context(cafile=ca.file)
        self._where = urllib.parse.urlsplit(cluster.address).netloc
        self._headers = {
            "Authorization": f"Bearer {Path(token).read_text(encoding='ascii')}",
            "Content-Type": "application/json",
            "User-Agent": "plain",
        }
        self._link, self._watching = self._connected(), self._connected()
        self.last: Any = None

    def __enter__(self) -> "_Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()
        if self._watching.sock is not None:
            with contextlib.suppress(OSError):
                self._watching.sock.shutdown(2)

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        self._link.request("POST", path, json.dumps(body), self._headers)
        answer = self._link.getresponse()
        said = answer.read()
        assert answer.status == http.client.CREATED, said

    def watch(self, path: str) -> None:
        threading.Thread(target=self._watch, args=(path,), daemon=True).start()

    def _watch(self, path: str) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            self._watching.request("GET", path, headers=self._headers)
            for line in self._watching.getresponse():
                self.last = json.loads(line)["object"].get("status")

    def _connected(self) -> http.client.HTTPSConnection:
        link = http.client.HTTPSConnection(self._where, context=self._context, timeout=60)
        link.connect()
        return link


@contextlib.contextmanager
def _launcher(kind: type[Launcher], argument: str) -> Generator[Launcher]:
    given = json.loads(argument)
    settings = Settings.model_validate(given.pop("settings"))
    cluster = Kubernetes.model_validate(given.pop("cluster"))
    with ensure(settings) as instance:
        yield kind(settings, instance, cluster, **given, poll_seconds=POLL_SECONDS)


@contextlib.contextmanager
def _timed(clock: Clock) -> Generator[None]:
    """From the call of the client to Dagster's own handler, which gets what was read."""
    run, handle = FactoryPipesClient.run, dg.PipesMessageHandler.handle_message
    create = Api.create

    def running(self: Any, **given: Any) -> Any:
        clock.began = time.time()
        directory["is"] = given["run_directory"].path / "messages"
        return run(self, **given)

    def handling(self: Any, message: Any) -> None:
        clock.note(directory["is"])
        handle(self, message)

    def creating(self: Api, path: str, body: Mapping[str, Any], **query: str) -> Json:
        if path.endswith("/rayjobs"):
            clock.posted = clock.posted or time.time()
        return create(self, path, body, **query)

    directory: dict[str, Path] = {}
    Api.create = creating
    FactoryPipesClient.run = running
    dg.PipesMessageHandler.handle_message = handling
    try:
        yield
    finally:
        FactoryPipesClient.run, dg.PipesMessageHandler.handle_message = run, handle
        Api.create = create
