"""What ended runs left on a cluster, found and removed through an API server of the test's own."""

import re
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from factory.control.kube import remains
from factory.control.kube.api import Patience, connect
from factory.control.kube.orphans import Fate, Judge
from factory.control.kube.remains import Remains, Removal
from factory.errors import ClusterRefused
from tests.control.a_cluster import a_cluster
from tests.control.kube.a_server import Reply, Request, Server, serving
from tests.control.kube.an_orphan import MADE, OWNER, RUN, an_object

RAY = "/apis/ray.io/v1/namespaces/training"
KINDS = {"rayjobs": "RayJob", "rayclusters": "RayCluster", "secrets": "Secret"}
OTHER = "the-other-run"


@dataclass
class Held:
    """The objects of a server: those that are deleted are gone, unless something keeps them."""

    objects: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str], dict[str, Any]]
    )
    kept: set[str] = field(default_factory=set[str])
    """Names of what does not go."""
    before: Callable[[Request], Reply | None] = lambda _: None
    deleted: list[str] = field(default_factory=list[str])

    def put(self, *objects: dict[str, Any]) -> None:
        for one in objects:
            self.objects[one["kind"], one["metadata"]["name"]] = one

    def answer(self, request: Request) -> Reply:
        told = self.before(request)
        if told is not None:
            return told
        path, _, query = request.path.partition("?")
        found = re.search(r"/namespaces/training/(\w+)(?:/([\w-]+))?$", path)
        assert found, path
        kind, called = KINDS[found[1]], found[2]
        if called is None:
            assert kind != "Secret", "the factory may not list Secrets"
            chosen = urllib.parse.parse_qs(query)
            assert chosen == {"labelSelector": ["app.kubernetes.io/managed-by=ai-factory"]}
            listed = [one for (of, _), one in self.objects.items() if of == kind]
            return Reply(body={"items": [{**one, "kind": None} for one in listed]})
        one = self.objects.get((kind, called))
        if one is None:
            return Reply(404, {"message": f"{called} not found"})
        if request.method == "DELETE":
            return self.delete(one, request.body)
        return Reply(body=one)

    def delete(self, one: dict[str, Any], options: dict[str, Any]) -> Reply:
        kind, called = one["kind"], one["metadata"]["name"]
        if options["preconditions"]["uid"] != one["metadata"]["uid"]:
            return Reply(409, {"message": "the UID in the precondition differs"})
        self.deleted.append(f"{kind} {called}")
        assert options["propagationPolicy"] == "Foreground"
        if called not in self.kept:
            del self.objects[kind, called]
        return Reply()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


@pytest.fixture
def held(server: Server, monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held()
    server.answer = made.answer
    monkeypatch.setattr(remains, "LOOK_AGAIN_SECONDS", 0.02)
    return made


@pytest.fixture
def fates() -> dict[str, Fate]:
    """The run has ended an hour ago."""
    return {RUN: Fate("failure", MADE), OTHER: Fate("started", None)}


@pytest.fixture
def there(server: Server, tmp_path: Path, fates: dict[str, Fate]) -> Iterator[Remains]:
    (tmp_path / "token").write_text("t")
    cluster = a_cluster(
        api_server=server.address,
        ca={"file": str(server.ca)},
        token={"file": str(tmp_path / "token")},
    )
    api = connect(cluster, patience=Patience(budget_seconds=0.2, first_wait_seconds=0.02))
    judge = Judge(
        owner=OWNER,
        known=lambda runs: {run: fates[run] for run in runs if run in fates},
        clock=lambda: MADE + timedelta(hours=1),
    )
    yield Remains(api, "training", judge)
    api.close()


def a_run(name: str = "run-a", **of: Any) -> list[dict[str, Any]]:
    """The objects of one run: its RayJob, the RayCluster that KubeRay made of it, its Secret."""
    job, cluster, secret = (
        an_object("RayJob", name, **of),
        an_object("RayCluster", f"{name}-xyz", **of),
        an_object("Secret", f"{name}-token", **of),
    )
    cluster["metadata"]["ownerReferences"] = [{"kind": "RayJob", "uid": job["metadata"]["uid"]}]
    return [job, cluster, secret]


def names(found: Any) -> list[str]:
    return [f"{one.kind} {one.name}" for one in found.orphans]


def swept(there: Remains, within_seconds: float = 5.0) -> dict[str, Removal]:
    removed = there.remove(there.find().orphans, within_seconds)
    return {f"{one.orphan.kind} {one.orphan.name}": one for one in removed}


def test_a_job_goes_with_its_cluster_and_then_its_secret(there: Remains, held: Held) -> None:
    held.put(*a_run(), *a_run("run-b", run=OTHER, root_run=OTHER), *a_run("run-c", owner="that"))
    found = there.find()
    assert names(found) == ["RayJob run-a", "Secret run-a-token"]
    assert found.left == {"alive": 1, "another's": 1}
    removed = swept(there)
    assert all(one.gone and one.words == "removed" for one in removed.values())
    assert held.deleted == ["RayJob run-a", "Secret run-a-token"]
    assert ("RayJob", "run-b") in held.objects
    assert ("Secret", "run-c-token") in held.objects


def test_looking_changes_nothing(there: Remains, held: Held, server: Server) -> None:
    held.put(*a_run())
    there.find()
    assert {request.method for request in server.requests} == {"GET"}


def test_nothing_is_there(there: Remains, held: Held, server: Server) -> None:
    assert there.remove(there.find().orphans, 5.0) == []
    assert len(server.requests) == 2


def test_a_cluster_that_has_lost_its_job(there: Remains, held: Held) -> None:
    _, cluster, secret = a_run()
    held.put(cluster, secret)
    assert names(there.find()) == ["RayCluster run-a-xyz"]  # no Secret of the name that it has
    cluster["spec"]["authOptions"]["secretName"] = "run-a-token"
    assert list(swept(there)) == ["RayCluster run-a-xyz", "Secret run-a-token"]
    assert held.objects == {}


def test_a_secret_stays_for_as_long_as_its_job(there: Remains, held: Held) -> None:
    held.put(*a_run())
    held.kept.add("run-a")
    removed = swept(there, within_seconds=0.1)
    assert not removed["RayJob run-a"].gone
    assert "KubeRay's operator does not let go of it" in removed["RayJob run-a"].words
    assert removed["Secret run-a-token"].words == "stays for as long as what refers to it"
    assert held.deleted == ["RayJob run-a"]


def test_what_is_leaving_is_waited_for_and_not_told_again(there: Remains, held: Held) -> None:
    held.put(*a_run(metadata={"deletionTimestamp": "2026-11-30T13:00:00Z"})[:1])
    looks: list[str] = []

    def before(request: Request) -> Reply | None:
        if request.path.endswith("/rayjobs/run-a"):
            looks.append(request.method)
            if len(looks) == 3:
                del held.objects["RayJob", "run-a"]
        return None

    held.before = before
    assert swept(there)["RayJob run-a"].gone
    assert looks == ["GET"] * 3


def test_a_secret_that_a_living_job_refers_to_stays(there: Remains, held: Held) -> None:
    held.put(*a_run())
    alive = an_object("RayJob", "run-b", run=OTHER, root_run=OTHER)
    alive["spec"]["rayClusterSpec"]["authOptions"]["secretName"] = "run-a-token"
    held.put(alive)
    assert names(there.find()) == ["RayJob run-a"]


def test_a_secret_of_another_stays(there: Remains, held: Held) -> None:
    job, _, _ = a_run()
    held.put(job, an_object("Secret", "run-a-token", owner="that-dagster"))
    assert names(there.find()) == ["RayJob run-a"]


def test_a_secret_alone_is_found_by_the_name_of_its_job_on_record(
    there: Remains, held: Held
) -> None:
    _, _, secret = a_run()
    held.put(secret, *a_run("run-b"), an_object("Secret", "run-c-token", run=OTHER, root_run=OTHER))
    assert names(there.find()) == ["RayJob run-b", "Secret run-b-token"]
    found = there.find(["run-a", "run-b", "run-c", "run-d"])
    assert names(found) == ["RayJob run-b", "Secret run-a-token", "Secret run-b-token"]
    assert found.left == {"alive": 1}
    assert all(one.gone for one in there.remove(found.orphans, 5.0))
    assert sorted(held.objects) == [("RayCluster", "run-b-xyz"), ("Secret", "run-c-token")]


def test_a_run_that_goes_on_meanwhile_keeps_its_objects(
    there: Remains, held: Held, fates: dict[str, Fate]
) -> None:
    held.put(*a_run())
    found = there.find()
    fates[RUN] = Fate("queued", None)
    removed = there.remove(found.orphans, 5.0)
    assert [(one.gone, one.words) for one in removed] == [
        (False, "stays: a run goes on with it"),
        (False, "stays for as long as what refers to it"),
    ]
    assert held.deleted == []


def test_another_of_the_same_name_is_not_deleted(there: Remains, held: Held) -> None:
    held.put(*a_run()[:1])
    found = there.find()
    held.put(an_object("RayJob", "run-a", metadata={"uid": "another"}))
    (removed,) = there.remove(found.orphans, 5.0)
    assert removed.gone
    assert removed.words == "removed; there is another of its name"
    assert held.deleted == []
    assert ("RayJob", "run-a") in held.objects


def test_somebody_else_was_faster(there: Remains, held: Held) -> None:
    held.put(*a_run())
    found = there.find()
    held.objects.clear()
    assert [one.words for one in there.remove(found.orphans, 5.0)] == ["removed"] * 2


def test_what_may_not_be_deleted_does_not_keep_the_rest(there: Remains, held: Held) -> None:
    held.put(*a_run(), *a_run("run-b"))

    def before(request: Request) -> Reply | None:
        if request.method == "DELETE" and request.path.endswith("/run-a"):
            return Reply(403, {"message": "rayjobs is forbidden"})
        return None

    held.before = before
    removed = swept(there)
    assert "rayjobs is forbidden" in removed["RayJob run-a"].words
    assert not removed["RayJob run-a"].gone
    assert removed["RayJob run-b"].gone
    assert removed["Secret run-b-token"].gone
    assert held.deleted == ["RayJob run-b", "Secret run-b-token"]


def test_a_server_that_falls_silent_leaves_it_open(there: Remains, held: Held) -> None:
    held.put(*a_run()[:1])
    found = there.find()
    held.before = lambda request: Reply(503) if request.method == "GET" else None
    (removed,) = there.remove(found.orphans, 5.0)
    assert not removed.gone
    assert "nobody can say whether it is gone" in removed.words


def test_no_more_time(there: Remains, held: Held) -> None:
    held.put(*a_run())
    removed = swept(there, within_seconds=-1)
    assert "no more time" in removed["RayJob run-a"].words
    assert held.deleted == []


def test_a_cluster_without_kuberay_is_said(there: Remains, held: Held) -> None:
    held.before = lambda _: Reply(404, {"message": "the server could not find it"})
    with pytest.raises(ClusterRefused, match="404"):
        there.find()
