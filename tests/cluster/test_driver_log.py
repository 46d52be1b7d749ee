"""A driver's log through the proxy of a real API server, with the factory's own token."""

from pathlib import Path

import pytest

from factory.control.kube.api import Api, connect
from factory.control.kube.dashboard import Dashboard
from factory.control.kube.driver_log import DriverLog, Waits
from factory.control.kube.fields import text
from factory.errors import ClusterOutOfReach
from factory.namespace import Namespace
from tests.cluster import nodes
from tests.cluster.access import Account
from tests.cluster.api import eventually
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import Dashboard as Scripted
from tests.cluster.dashboard import Job, dashboard
from tests.cluster.dashboard_log import every_cut, lines_of
from tests.cluster.rayjobs import rayjob
from tests.control.a_cluster import a_cluster

pytestmark = pytest.mark.cluster

CANARY = "canary-ray-5b02e7"
PATIENCE = 60.0
QUICK = Waits(first_seconds=0.05, longest_seconds=0.5)


def submitted(west: ControlPlane, training: str, told: Scripted) -> tuple[str, Job]:
    """The operator hands a job to the dashboard; its Ray cluster's name, and the job."""
    path = f"/apis/ray.io/v1/namespaces/{training}/rayjobs"
    west.admin.create(path, rayjob("logged", dashboard_port=told.port))
    pods = f"/api/v1/namespaces/{training}/pods"
    assert eventually(lambda: len(west.admin.items(pods)) == 2)
    for pod in west.admin.items(pods):
        nodes.run(west.admin, pod, ip=told.address)
    (job,) = eventually(lambda: list(told.jobs.values()))
    return text(west.admin.get(f"{path}/logged"), "status", "rayClusterName"), job


def client(west: ControlPlane, account: Account, cluster: str, folder: Path) -> Dashboard:
    (folder / "token").write_text(account.token())
    declared = a_cluster(
        api_server=west.address,
        ca={"file": str(west.ca)},
        token={"file": str(folder / "token")},
        namespace=account.namespace,
    )
    api: Api = connect(declared)
    return Dashboard(api, declared, cluster, CANARY)


def test_every_byte_passes_the_proxy_as_it_is_written(
    west: ControlPlane, training: str, account: Account, gpu_nodes: list[str], tmp_path: Path
) -> None:
    run = Namespace(tmp_path).open_run("public", "run-1")
    with dashboard() as told:
        cluster, job = submitted(west, training, told)
        told.token = CANARY  # the operator of this test has none
        head = client(west, account, cluster, tmp_path)
        log = DriverLog(run, lambda: head, lambda: job.submission_id, waits=QUICK)
        log.start()
        job.log.data = b"first\nhalf"
        assert eventually(lambda: log.path.read_bytes() == b"first\nhalf", PATIENCE), log.problem

        job.log.ended = True  # the connection is cut, and those that follow
        assert eventually(lambda: log.problem, PATIENCE)
        job.log.data += b" a line\n\xff\x00\r\n" + b"a" * 5_000_000 + lines_of(50_000)
        job.log.cuts = every_cut(len(job.log.data), 4)
        job.log.ended = False
        assert eventually(lambda: not job.log.cuts, PATIENCE)
        assert log.finish(PATIENCE)
        log.close()
        assert log.path.read_bytes() == job.log.data
        ours = [headers for headers in told.asked if headers["User-Agent"] == "ai-factory"]
        assert ours
        assert not any(headers["Authorization"] for headers in ours)


def test_a_log_that_the_proxy_loses_is_not_taken_for_whole(
    west: ControlPlane, training: str, account: Account, gpu_nodes: list[str], tmp_path: Path
) -> None:
    with dashboard() as told:
        cluster, job = submitted(west, training, told)
        head = client(west, account, cluster, tmp_path)
        job.log.data = lines_of(20_000)
        job.log.cuts = [200_000]
        found = head.job_status(job.submission_id)
        assert found is not None
        with pytest.raises(ClusterOutOfReach, match="not all of it"):
            list(head.logs(found, PATIENCE))
        assert b"".join(head.logs(found, PATIENCE)) == job.log.data
