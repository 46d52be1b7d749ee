"""What ended runs left on a real API server with KubeRay goes, with the rights of the factory."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from factory.control.clusters import Kubernetes
from factory.control.fates import judge
from factory.control.kube.names import OWNER
from factory.control.kube.rayjob import rayjob, secret
from factory.control.left_behind import Report, on_cluster
from factory.control.owner import owner
from tests.cluster.access import Account, factory_account
from tests.cluster.api import eventually
from tests.cluster.control_plane import ControlPlane
from tests.control.a_cluster import a_cluster
from tests.control.kube.submissions import launch, submission

pytestmark = pytest.mark.cluster

KINDS = {
    "RayJob": "/apis/ray.io/v1/namespaces/{}/rayjobs",
    "RayCluster": "/apis/ray.io/v1/namespaces/{}/rayclusters",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Pod": "/api/v1/namespaces/{}/pods",
}
OWN_SCHEDULER = {"scheduler": "default", "multi_node_without_gang": True}
WITHIN_SECONDS = 120.0


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@pytest.fixture
def elsewhere(west: ControlPlane) -> Iterator[Account]:
    """The factory's account in a second namespace."""
    name = f"training-{uuid.uuid4().hex[:8]}"
    west.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield factory_account(west, name)
    west.admin.delete(f"/api/v1/namespaces/{name}")


class Place:
    """A namespace as a cluster of the factory, and the objects of runs in it."""

    def __init__(self, account: Account, folder: Path, instance: dg.DagsterInstance) -> None:
        token = folder / f"token-{account.namespace}"
        token.write_text(account.token())
        plane = account.plane
        self.admin = plane.admin
        self.cluster: Kubernetes = a_cluster(
            api_server=plane.address,
            ca={"file": str(plane.ca)},
            token={"file": str(token)},
            namespace=account.namespace,
            **OWN_SCHEDULER,
        )
        self.instance = instance

    def path(self, kind: str, name: str = "") -> str:
        return KINDS[kind].format(self.cluster.namespace) + (f"/{name}" if name else "")

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return self.admin.items(self.path(kind))

    def names(self, kind: str) -> set[str]:
        return {one["metadata"]["name"] for one in self.objects(kind)}

    def a_run(self, status: str = "", *, of: str = "", token: bool = True) -> str:
        """A run that Dagster has in a state, or does not know, with its objects; their name."""
        run_id = str(uuid.uuid4())
        if status:
            made = dg.DagsterRun(
                job_name="smoke", run_id=run_id, status=dg.DagsterRunStatus[status]
            )
            self.instance.add_run(made)
        asked = submission(
            launch(run_id=run_id),
            cluster=self.cluster,
            root_run_id=run_id,
            owner=of or owner(self.instance),
        )
        job = self.admin.create(self.path("RayJob"), rayjob(asked))
        if token:
            manifest = secret(asked, "x" * 40)
            manifest["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayJob",
                    "name": asked.name,
                    "uid": job["metadata"]["uid"],
                }
            ]
            self.admin.create(self.path("Secret"), manifest)
        return asked.name

    def ray_cluster(self, job: str) -> str:
        """The name of the RayCluster that KubeRay has made of a RayJob."""

        def look() -> str:
            status = self.admin.get(self.path("RayJob", job)).get("status", {})
            found = status.get("rayClusterName", "")
            return found if found in self.names("RayCluster") else ""

        made = eventually(look, seconds=60)
        assert made, "KubeRay has not taken the job up"
        return made

    def sweep(self, within_seconds: float | None = WITHIN_SECONDS) -> Report:
        return on_cluster(self.cluster, judge(self.instance, timedelta(0)), within_seconds)


@pytest.fixture
def here(account: Account, tmp_path: Path, instance: dg.DagsterInstance) -> Place:
    return Place(account, tmp_path, instance)


@pytest.fixture
def there(elsewhere: Account, tmp_path: Path, instance: dg.DagsterInstance) -> Place:
    return Place(elsewhere, tmp_path, instance)


def test_what_a_dead_run_left_goes_and_the_rest_stays(here: Place, there: Place) -> None:
    dead, unknown = here.a_run("FAILURE"), here.a_run()
    alive, others = here.a_run("STARTED"), here.a_run(of="that-dagster")
    far = there.a_run("CANCELED")
    clusters = {job: here.ray_cluster(job) for job in (dead, unknown, alive, others)}
    found = here.sweep(None)
    assert {(row.kind, row.name) for row in found.rows} == {
        (kind, f"{job}{suffix}")
        for job in (dead, unknown)
        for kind, suffix in (("RayJob", ""), ("Secret", "-token"))
    }
    report = here.sweep()
    assert report.left == [], report
    assert len(report.rows) == 4
    assert here.names("RayJob") == {alive, others}
    assert here.names("Secret") == {f"{alive}-token", f"{others}-token"}
    assert here.names("RayCluster") == {clusters[alive], clusters[others]}
    of_pods = {pod["metadata"]["labels"]["ray.io/cluster"] for pod in here.objects("Pod")}
    assert of_pods <= {clusters[alive], clusters[others]}
    assert "1 object of another Dagster, or of nobody, left alone" in report.notes[0]
    assert there.names("RayJob") == {far}
    assert there.sweep().left == []
    assert there.names("RayJob") | there.names("Secret") == set()
    assert here.sweep().rows == []


def test_a_job_whose_token_was_never_made_goes_too(here: Place) -> None:
    """KubeRay asks for the token before it lets go of a RayJob that has a RayCluster."""
    job = here.a_run("FAILURE", token=False)
    here.ray_cluster(job)
    report = here.sweep()
    assert report.left == [], report
    assert here.names("RayJob") | here.names("RayCluster") == set()


def test_a_cluster_that_was_parted_from_its_job(here: Place) -> None:
    job = here.a_run("FAILURE")
    made = here.ray_cluster(job)
    uid = here.admin.get(here.path("RayCluster", made))["metadata"]["uid"]
    asked = here.admin.ask("DELETE", here.path("RayJob", job), {"propagationPolicy": "Orphan"})
    assert asked.ok
    assert eventually(lambda: here.names("RayJob") == set())
    assert here.admin.get(here.path("RayCluster", made))["metadata"]["uid"] == uid
    report = here.sweep()
    assert {row.kind for row in report.rows} == {"RayCluster", "Secret"}
    assert report.left == [], report
    assert here.names("RayCluster") | here.names("Secret") == set()


def test_two_sweep_at_once(here: Place) -> None:

    jobs = [here.a_run("FAILURE") for _ in range(3)]
    for job in jobs:
        here.ray_cluster(job)
    with ThreadPoolExecutor(2) as both:
        reports = [one.result() for one in [both.submit(here.sweep) for _ in range(2)]]
    assert [report.left for report in reports] == [[], []]
    assert here.names("RayJob") | here.names("Secret") == set()


def test_the_factory_may_not_list_secrets_and_need_not(here: Place, account: Account) -> None:
    asked = account.api().ask("GET", here.path("Secret"))
    assert asked.status == HTTPStatus.FORBIDDEN
    job = here.a_run("STARTED")
    assert here.admin.get(here.path("RayJob", job))["metadata"]["labels"][OWNER] == owner(
        here.instance
    )
    assert here.sweep().rows == []
