"""An attempt that another process has begun, or that is not this one's at all."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from factory.control.kube import cluster as kube_cluster
from factory.control.kube import pace
from factory.control.kube.api import Patience, connect
from factory.control.kube.cluster import KubernetesCluster
from factory.control.kube.handles import Handle, Journal
from factory.control.kube.names import OWNER
from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.record import Record
from factory.control.kube.submission import Submission
from factory.errors import RunFailed
from factory.namespace import Namespace
from tests.cluster.dashboard import Dashboard, Job, dashboard
from tests.control.kube.a_server import Reply, Request, Server, serving
from tests.control.kube.submissions import RUN_ID, submission

OF_RAY = "r" * 40
NO = Patience(connect_seconds=5.0, answer_seconds=5.0, budget_seconds=0.0)


@dataclass
class Cluster:
    """An API server that knows one RayJob and its Secret, and a dashboard that knows its driver."""

    server: Server
    head: Dashboard
    chosen: Submission
    instance: dg.DagsterInstance
    run: Any
    refuses: int = 0
    conflicts: bool = False
    """Whether there is a RayJob of that name, for the next creation only."""
    there: dict[str, Any] = field(default_factory=dict[str, Any])
    pods: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stopped_before: list[list[str]] = field(default_factory=list[list[str]])
    """What Ray was told to stop, at each deletion."""

    def answer(self, request: Request) -> Reply:
        if self.refuses:
            return Reply(self.refuses, {"message": "the test says no"})
        path = request.path.partition("?")[0]
        if request.method == "DELETE":
            self.stopped_before.append(list(self.head.stopped))
            self.pods.clear()
            self.there.pop(path, None)
            return Reply()
        if request.method == "POST":
            return self.create(f"{path}/{request.body['metadata']['name']}", request.body)
        if path.endswith("/pods"):
            return Reply(body={"items": self.pods})
        if "?" in request.path:
            return Reply(body={"items": []})
        return Reply(body=self.there[path]) if path in self.there else Reply(404)

    def create(self, path: str, body: dict[str, Any]) -> Reply:
        conflicts = self.conflicts and "/rayjobs/" in path
        if path in self.there or conflicts:
            self.conflicts = False
            return Reply(409, {"message": "it exists"})
        self.there[path] = body
        return Reply(201, body)

    def has(self, labels: dict[str, str] | None = None) -> None:
        """The attempt's objects are there, its driver has ended."""
        name, space = self.chosen.name, self.chosen.cluster.namespace
        job = rayjob(self.chosen)
        job["metadata"]["labels"] |= labels or {}
        job["status"] = {
            "jobDeploymentStatus": "Complete",
            "jobStatus": "SUCCEEDED",
            "jobId": "job-1",
            "rayClusterName": "ray-1",
        }
        token = secret(self.chosen, OF_RAY)
        self.there = {
            f"/apis/ray.io/v1/namespaces/{space}/rayjobs/{name}": job,
            f"/api/v1/namespaces/{space}/secrets/{self.chosen.secret_name}": token,
        }

    def runs(self) -> Job:
        """The attempt's objects are there, and its driver goes on."""
        self.has()
        (job,) = (there for path, there in self.there.items() if "/rayjobs/" in path)
        started = {"rayJobInfo": {"startTime": "2026-01-01T00:00:00Z"}}
        job["status"] |= {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", **started}
        labels = {"ray.io/node-type": "head", "ray.io/cluster": "ray-1"}
        spec, status = {"nodeName": "node-a"}, {"phase": "Running"}
        made = {"name": "ray-1-head", "uid": "u-1", "labels": labels}
        self.pods = [{"metadata": made, "spec": spec, "status": status}]
        self.head.jobs["job-1"] = Job("job-1", "python -m factory.training", status="RUNNING")
        self.head.jobs["job-1"].log.data = b"the last line\n"
        return self.head.jobs["job-1"]

    def followed(self, handle: Handle | None = None) -> KubernetesCluster:
        """By a process that has just begun."""
        run = dg.DagsterRun(job_name="train", run_id=RUN_ID)
        made = KubernetesCluster(
            connect(self.chosen.cluster, patience=NO),
            self.chosen,
            self.run,
            Record(Journal(self.instance, run, "train"), self.chosen, handle),
        )
        made.submit(self.chosen.environment)
        return made

    def handle(self, **changes: Any) -> Handle:
        """What the process before has written down."""
        fields: dict[str, Any] = {
            "run_id": RUN_ID,
            "root_run_id": RUN_ID,
            "step_key": "train",
            "launch": self.chosen.launch,
            "name": self.chosen.name,
            "made": True,
            "raycluster": "ray-1",
            **changes,
        }
        return Handle(**fields)

    def page(self) -> list[str]:
        """The lines of the run's page."""
        return [entry.message for entry in self.instance.all_logs(RUN_ID)]

    def asked(self, method: str) -> list[str]:
        return [one.path for one in self.server.requests if one.method == method]


@pytest.fixture(autouse=True)
def at_every_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(pace, "HURRY_SECONDS", 0.0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    token = tmp_path / "token"
    token.write_text("t")
    (tmp_path / "server").mkdir()
    with (
        serving(tmp_path / "server") as server,
        dashboard() as head,
        dg.DagsterInstance.ephemeral() as instance,
    ):
        head.token = OF_RAY
        chosen = submission(
            cluster={
                "api_server": server.address,
                "ca": {"file": str(server.ca)},
                "token": {"file": str(token)},
                "scheduler": "default",
                "multi_node_without_gang": True,
                "pod_security": "privileged",
                "dashboard": {
                    "route": "template",
                    "template": f"http://{head.address}:{head.port}/{{cluster}}",
                },
            }
        )
        run = Namespace(tmp_path).open_run("public", RUN_ID)
        instance.add_run(dg.DagsterRun(job_name="train", run_id=RUN_ID))
        made = Cluster(server, head, chosen, instance, run)
        server.answer = made.answer
        yield made


@pytest.mark.parametrize("status", [401, 403, 410, 503])
def test_a_run_that_goes_on_is_not_ended_by_a_refusal(cluster: Cluster, status: int) -> None:
    cluster.has()
    cluster.refuses = status
    followed = cluster.followed(cluster.handle())
    assert followed.poll().phase == "unreachable"
    cluster.refuses = 0
    assert followed.poll().phase == "succeeded"
    followed.leave()


@pytest.mark.parametrize(
    "odd",
    [
        Reply(302, headers={"Location": "http://[login"}),
        Reply(body=b"[" * 200_000),
        Reply(body=b"<html>log in</html>"),
    ],
    ids=["elsewhere", "nested", "a page"],
)
@pytest.mark.parametrize("known", [True, False], ids=["later", "at first"])
def test_nor_by_an_odd_answer(cluster: Cluster, odd: Reply, known: bool) -> None:
    cluster.has()
    for path, there in cluster.there.items():
        if "/rayjobs/" in path:
            there["status"] |= {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
    followed = cluster.followed(cluster.handle())
    if known:
        assert not followed.poll().ended
    cluster.server.answer = lambda _: odd
    assert followed.poll().phase == "unreachable"
    cluster.server.answer = cluster.answer
    assert followed.poll().phase not in ("unreachable", "failed", "gone")
    assert cluster.asked("DELETE") == []
    followed.leave()


def test_a_run_that_was_never_there_is(cluster: Cluster) -> None:
    cluster.refuses = 403
    followed = cluster.followed()
    assert followed.poll().phase == "failed"
    followed.leave()


def test_the_end_of_the_log_is_fetched_also_where_the_end_is_on_record(cluster: Cluster) -> None:
    cluster.has()
    job = Job("job-1", "python -m factory.training", status="SUCCEEDED")
    job.log.data = b"the last line\n"
    cluster.head.jobs["job-1"] = job
    followed = cluster.followed(cluster.handle(driver_started="12", ended="succeeded"))
    assert followed.poll().phase == "succeeded"
    followed.stop(1.0)
    assert followed.log.read_bytes() == b"the last line\n"
    assert cluster.there == {}


def test_what_is_another_runs_is_left_alone(cluster: Cluster) -> None:
    cluster.has({OWNER: "somebody-else"})
    followed = cluster.followed()
    with pytest.raises(RunFailed, match="left alone"):
        followed.poll()
    followed.stop(1.0)
    assert cluster.asked("DELETE") == []


def test_a_rayjob_in_the_way_that_goes_at_once_is_no_refusal(cluster: Cluster) -> None:
    """It was being deleted: there when this one was created, and gone for the next look."""
    cluster.conflicts = True
    followed = cluster.followed()
    assert followed.poll().phase == "unreachable"
    assert followed.poll().phase == "queued"
    assert any("/rayjobs/" in path for path in cluster.there)
    followed.leave()


def test_a_server_that_takes_long_is_asked_less_and_less_often(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "LOOK_SECONDS", 5.0)
    monkeypatch.setattr(pace, "HURRY_SECONDS", 1.0)
    now = 0.0
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: now))
    followed, looks = cluster.followed(), list[float]()
    while now < 60:  # KubeRay's operator does nothing with it
        before = len(cluster.server.requests)
        followed.poll()
        if len(cluster.server.requests) > before:
            looks.append(now)
        now += 0.25
    waits = [after - one for one, after in itertools.pairwise(looks)]
    assert waits[:4] == [1.0] * 4
    assert waits == sorted(waits)
    assert waits[-1] == 5.0
    (path,) = (path for path in cluster.there if "/rayjobs/" in path)
    cluster.there[path]["status"] = {"jobDeploymentStatus": "Suspended"}
    before, now = len(cluster.server.requests), now + 5.0
    followed.poll()
    assert len(cluster.server.requests) > before
    followed.leave()


def test_the_directory_of_a_run_that_goes_on_is_not_handed_over_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods write in it; and what is a large directory by now is read by nobody."""
    handed: list[object] = []

    def hand_over(run: object, _: object) -> None:
        handed.append(run)

    monkeypatch.setattr(kube_cluster, "hand_over", hand_over)
    cluster.has()
    cluster.followed(cluster.handle()).leave()
    assert handed == []
    cluster.followed().leave()
    assert handed == [cluster.run]


def test_what_was_left_is_not_stopped_afterwards(cluster: Cluster) -> None:
    cluster.has()
    followed = cluster.followed(cluster.handle())
    assert followed.taken_up
    followed.leave()
    followed.stop(1.0)
    assert cluster.asked("DELETE") == []
    assert len(cluster.there) == 2


def test_after_a_look_that_was_not_answered_a_cancelled_driver_is_told_to_stop(
    cluster: Cluster,
) -> None:
    cluster.runs()
    followed = cluster.followed(cluster.handle())
    assert followed.poll().phase == "running"
    cluster.refuses = 503
    assert followed.poll().phase == "unreachable"
    assert followed.facts()["nodes"] == "node-a"
    cluster.refuses = 0
    followed.stop(30.0)
    assert cluster.stopped_before[0] == ["job-1"]
    assert followed.log.read_bytes() == b"the last line\n"
    assert (cluster.run.path / "logs/ray/ray-1-head.log").is_file()
    assert cluster.there == {}


@pytest.mark.parametrize("refusals", [0, 1, 3])
def test_nor_is_one_killed_that_was_taken_up_and_never_looked_at(
    cluster: Cluster, refusals: int
) -> None:
    cluster.runs()
    followed = cluster.followed(cluster.handle())
    cluster.server.replies = [Reply(503) for _ in range(refusals)]
    followed.stop(30.0)
    assert cluster.stopped_before[0] == ["job-1"]
    assert followed.log.read_bytes() == b"the last line\n"
    assert cluster.there == {}


def test_a_server_that_stays_away_is_waited_for_until_the_grace_time_is_over(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_cluster, "BEYOND_GRACE_SECONDS", -1000.0)
    cluster.runs()
    followed = cluster.followed(cluster.handle())
    cluster.refuses = 503
    began = time.monotonic()
    with pytest.raises(RunFailed, match="this is left"):
        followed.stop(0.3)
    assert 0.3 <= time.monotonic() - began < 20
    with pytest.raises(RunFailed, match="this is left"):
        followed.stop(0.0)
    assert cluster.head.stopped == []
    followed.leave()


def test_a_driver_that_never_came_is_not_waited_for(cluster: Cluster) -> None:
    followed = cluster.followed(cluster.handle())
    began = time.monotonic()
    followed.stop(600.0)
    assert time.monotonic() - began < 60
    assert cluster.head.stopped == []


def test_what_is_another_runs_is_left_alone_also_where_no_look_has_shown_it(
    cluster: Cluster,
) -> None:
    cluster.has({OWNER: "somebody-else"})
    followed = cluster.followed(cluster.handle())
    with pytest.raises(RunFailed, match="left alone"):
        followed.stop(1.0)
    followed.stop(0.0)
    assert cluster.asked("DELETE") == []


def stopped(cluster: Cluster) -> list[str]:
    """What the page says of the log of a driver that ran and was stopped."""
    followed = cluster.followed(cluster.handle())
    followed.poll()
    followed.stop(1.0)
    assert cluster.there == {}
    return [line.replace(str(followed.log), "LOG") for line in cluster.page() if "lack" in line]


def test_a_driver_log_that_lacks_its_end_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_cluster, "LAST_WORDS_SECONDS", 0.3)
    cluster.runs()
    cluster.head.illness = HTTPStatus.BAD_GATEWAY
    [said] = stopped(cluster)
    assert said.startswith("LOG may lack the end of the driver's log. GET /api/jobs/job-1 of the")
    assert "was answered with 502" in said


def test_of_a_private_run_it_is_not_said_why(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_cluster, "LAST_WORDS_SECONDS", 0.3)
    launch = cluster.chosen.launch.model_copy(update={"classification": "private"})
    cluster.chosen = replace(cluster.chosen, launch=launch)
    cluster.runs()
    cluster.head.illness = HTTPStatus.BAD_GATEWAY
    why = "Its head is gone, or did not answer in time."
    assert stopped(cluster) == [f"LOG may lack the end of the driver's log. {why}"]


def test_of_a_head_that_is_gone_nobody_knows_more(cluster: Cluster) -> None:
    cluster.runs()
    cluster.pods.clear()
    cluster.head.jobs.clear()
    [said] = stopped(cluster)
    assert said.endswith("Its head is gone, or did not answer in time.")


def test_a_whole_log_is_not_spoken_of_nor_one_of_a_driver_that_never_ran(
    cluster: Cluster,
) -> None:
    cluster.runs()
    assert stopped(cluster) == []
    cluster.has()
    cluster.head.jobs.clear()
    assert stopped(cluster) == []


def test_a_whole_log_stays_one_where_the_run_is_stopped_once_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.runs()
    followed = cluster.followed(cluster.handle())
    followed.poll()
    with monkeypatch.context() as first:
        first.setattr(kube_cluster.Objects, "remove", fails)
        with pytest.raises(RunFailed, match="is left"):
            followed.stop(1.0)
    cluster.head.jobs.clear()
    followed.stop(0.0)
    assert [line for line in cluster.page() if "lack" in line] == []


def fails(*_: object) -> None:
    raise RunFailed("something is left")
