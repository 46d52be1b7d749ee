"""The clusters of these tests are real where it matters, and leave nothing behind."""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest

from factory.control.processes import members
from factory.settings import CHECKOUT
from tests.cluster import builds, nodes
from tests.cluster.access import Account
from tests.cluster.api import Api, Object, Refused, eventually
from tests.cluster.control_plane import Clusters, ControlPlane
from tests.cluster.dashboard import dashboard
from tests.cluster.rayjobs import rayjob

pytestmark = pytest.mark.cluster

UNAUTHORIZED = 401
FORBIDDEN = 403

START = """
import sys, time
from tests.cluster.control_plane import running
with running(sys.argv[1]) as plane:
    print(plane.session.id, plane.address, flush=True)
    sys.stdin.readline()
"""


def _pods(api: Api, namespace: str) -> list[Object]:
    return api.items(f"/api/v1/namespaces/{namespace}/pods")


def _rayjobs(namespace: str) -> str:
    return f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"


def _start(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START, name],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _said(harness: subprocess.Popen[str]) -> list[str]:
    """The session and the address of a cluster, once it runs."""
    assert harness.stdout is not None
    return harness.stdout.readline().split()


def _let_go(harness: subprocess.Popen[str]) -> None:
    """Tell it to stop, and wait."""
    harness.communicate("\n", timeout=60)


def test_a_server_answers_with_the_version_that_was_asked_for(west: ControlPlane) -> None:
    assert west.admin.get("/version")["gitVersion"] == f"v{builds.KUBERNETES}"


def test_kubectl_works(west: ControlPlane) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    command = [kubectl, f"--kubeconfig={west.kubeconfig}", "get", "namespaces", "-o", "name"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "namespace/kube-system" in done.stdout


def test_the_operator_takes_a_job_up(
    west: ControlPlane, training: str, gpu_nodes: list[str]
) -> None:
    """A RayCluster and pods appear; they are bound to nodes, since these have what they ask for."""
    west.admin.create(_rayjobs(training), rayjob("first"))

    pods = eventually(lambda: [p for p in _pods(west.admin, training) if p["spec"].get("nodeName")])
    assert eventually(lambda: len(_pods(west.admin, training)) == 2)
    assert {pod["spec"]["nodeName"] for pod in pods} <= set(gpu_nodes)
    clusters = west.admin.items(f"/apis/ray.io/v1/namespaces/{training}/rayclusters")
    owners = [one["metadata"]["ownerReferences"][0]["name"] for one in clusters]
    assert owners == ["first"]


def test_a_pod_that_no_node_can_hold_waits_and_says_why(
    west: ControlPlane, training: str, gpu_nodes: list[str]
) -> None:
    west.admin.create(_rayjobs(training), rayjob("large", gpus=9))

    def reasons() -> list[str]:
        return [
            condition["message"]
            for pod in _pods(west.admin, training)
            for condition in pod.get("status", {}).get("conditions", [])
            if condition.get("reason") == "Unschedulable"
        ]

    assert any("Insufficient nvidia.com/gpu" in reason for reason in eventually(reasons))


def test_pods_fare_as_the_test_says(
    west: ControlPlane, training: str, gpu_nodes: list[str]
) -> None:
    """Once every pod is ready the operator calls the cluster ready."""
    west.admin.create(_rayjobs(training), rayjob("played"))
    assert eventually(lambda: len(_pods(west.admin, training)) == 2)
    for pod in _pods(west.admin, training):
        nodes.run(west.admin, pod)

    def states() -> list[str]:
        clusters = west.admin.items(f"/apis/ray.io/v1/namespaces/{training}/rayclusters")
        return [one.get("status", {}).get("state", "") for one in clusters]

    assert eventually(lambda: states() == ["ready"]), states()


def test_a_job_fares_as_its_dashboard_says(
    west: ControlPlane, training: str, gpu_nodes: list[str]
) -> None:
    """The operator reaches the dashboard through the API server, submits, and follows."""
    path = f"{_rayjobs(training)}/told"

    def state() -> tuple[str | None, str | None]:
        status = west.admin.get(path).get("status", {})
        return status.get("jobDeploymentStatus"), status.get("jobStatus")

    with dashboard() as told:
        west.admin.create(_rayjobs(training), rayjob("told", dashboard_port=told.port))
        assert eventually(lambda: len(_pods(west.admin, training)) == 2)
        for pod in _pods(west.admin, training):
            nodes.run(west.admin, pod, ip=told.address)
        (job,) = eventually(lambda: list(told.jobs.values()))
        assert job.entrypoint == "true"
        for status, deployment in (("RUNNING", "Running"), ("SUCCEEDED", "Complete")):
            job.status = status
            assert eventually(lambda now=(deployment, status): state() == now), state()


@pytest.mark.parametrize(
    ("play", "phase", "said"),
    [
        (partial(nodes.wait, reason="ImagePullBackOff"), "Pending", "ImagePullBackOff"),
        (partial(nodes.end, exit_code=137, reason="OOMKilled"), "Failed", "OOMKilled"),
        (partial(nodes.end, exit_code=1), "Failed", "Error"),
        (partial(nodes.end, exit_code=0), "Succeeded", "Completed"),
        (nodes.evict, "Failed", "Evicted"),
    ],
)
def test_a_pod_can_fare_badly(
    west: ControlPlane, training: str, play: Callable[[Api, Object], Object], phase: str, said: str
) -> None:
    path = f"/api/v1/namespaces/{training}"
    assert eventually(lambda: west.admin.exists(f"{path}/serviceaccounts/default"))
    spec = {"containers": [{"name": "one", "image": "example.test/one"}], "nodeName": "elsewhere"}
    pod = west.admin.create(f"{path}/pods", {"metadata": {"name": "p"}, "spec": spec})

    status = play(west.admin, pod)["status"]

    assert status["phase"] == phase
    assert said in json.dumps(status)


def test_a_deleted_job_takes_its_pods_along(
    west: ControlPlane, training: str, gpu_nodes: list[str]
) -> None:
    west.admin.create(_rayjobs(training), rayjob("short"))
    assert eventually(lambda: len(_pods(west.admin, training)) == 2)

    west.admin.delete(f"{_rayjobs(training)}/short")

    def gone() -> bool:
        for pod in _pods(west.admin, training):
            if "deletionTimestamp" in pod["metadata"]:
                nodes.finish_deletion(west.admin, pod)
        return not _pods(west.admin, training)

    assert eventually(gone), _pods(west.admin, training)


def test_a_quota_binds(west: ControlPlane, training: str, gpu_nodes: list[str]) -> None:
    """The second job's worker is one GPU too many, and the reason is an event."""
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "8"}}}
    path = f"/api/v1/namespaces/{training}/resourcequotas"
    west.admin.create(path, quota)
    assert eventually(lambda: west.admin.get(f"{path}/gpus").get("status", {}).get("hard"))
    west.admin.create(_rayjobs(training), rayjob("fits"))
    assert eventually(lambda: len(_pods(west.admin, training)) == 2)

    west.admin.create(_rayjobs(training), rayjob("does-not-fit", gpus=1))

    def complaints() -> list[str]:
        events = west.admin.items(f"/api/v1/namespaces/{training}/events")
        return [one["message"] for one in events if "exceeded quota" in one["message"]]

    assert eventually(complaints)
    used = west.admin.get(f"{path}/gpus")["status"]["used"]
    assert used == {"requests.nvidia.com/gpu": "8"}


def test_pods_get_the_service_account_of_their_namespace(west: ControlPlane, training: str) -> None:
    """The admission of service accounts is on: it refuses one that does not exist."""
    path = f"/api/v1/namespaces/{training}"
    assert eventually(lambda: west.admin.exists(f"{path}/serviceaccounts/default"))
    container = {"name": "one", "image": "example.test/one"}

    def create(account: str) -> Object:
        spec = {"containers": [container], "serviceAccountName": account}
        return west.admin.create(f"{path}/pods", {"metadata": {"name": "p"}, "spec": spec})

    with pytest.raises(Refused, match="nobody"):
        create("nobody")
    (volume,) = create("default")["spec"]["volumes"]
    assert "projected" in volume


def test_the_factory_may_run_jobs_in_its_namespace(account: Account) -> None:
    api = account.api()
    api.create(_rayjobs(account.namespace), rayjob("allowed"))
    assert [one["metadata"]["name"] for one in api.items(_rayjobs(account.namespace))] == [
        "allowed"
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/namespaces/default/pods"),
        ("GET", "/apis/ray.io/v1/rayjobs"),
        ("POST", "/api/v1/namespaces/{namespace}/pods"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"),
        ("DELETE", "/apis/ray.io/v1/namespaces/{namespace}/rayjobs"),
    ],
)
def test_the_factory_may_do_nothing_else(account: Account, method: str, path: str) -> None:
    answer = account.api().ask(method, path.format(namespace=account.namespace), {})
    assert answer.status == FORBIDDEN, answer


def test_an_expired_token_is_refused(account: Account) -> None:
    """The same token with some time left is good, so nothing else is wrong with it."""
    path = _rayjobs(account.namespace)
    good, expired = (account.api(account.signed_token(left)) for left in (600, -600))
    assert good.ask("GET", path).ok
    assert expired.ask("GET", path).status == UNAUTHORIZED


def test_the_token_of_a_deleted_account_is_refused(account: Account) -> None:
    api = account.api()
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/factory"
    account.plane.admin.delete(path)
    assert eventually(
        lambda: api.ask("GET", _rayjobs(account.namespace)).status == UNAUTHORIZED, seconds=20
    )


def test_the_second_cluster_refuses_what_the_first_one_gave_out(
    east: ControlPlane, west: ControlPlane, account: Account
) -> None:
    """Its tokens, its administrator, and anyone who trusts only the first one's authority."""
    for token in (account.token(), account.signed_token(600), west.admin.token):
        stranger = dataclasses.replace(east.admin, token=token)
        assert stranger.ask("GET", "/api/v1/namespaces").status == UNAUTHORIZED
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        dataclasses.replace(east.admin, ca=west.ca).ask("GET", "/version")


def test_a_server_that_was_killed_comes_back_with_everything(
    west: ControlPlane, training: str
) -> None:
    west.server.restart()
    assert not west.admin.ready()
    west.wait_until_ready()
    assert west.admin.exists(f"/api/v1/namespaces/{training}")


def test_nothing_is_left_of_a_harness_that_was_killed(west: ControlPlane) -> None:
    """The next start ends its processes and removes its files; the living cluster stays."""
    harness = _start("doomed")
    session_id, _ = _said(harness)
    (doomed,) = (one for one in Clusters().all() if one.id == session_id)
    harness.send_signal(signal.SIGKILL)
    harness.communicate()
    assert len(members(doomed.id, doomed.directory)) == 5
    assert doomed.directory.exists()

    after = _start("after")
    _said(after)
    try:
        assert members(doomed.id, doomed.directory) == []
        assert not doomed.directory.exists()
        assert doomed.id not in {one.id for one in Clusters().all()}
        assert west.admin.ready()
    finally:
        _let_go(after)


def test_two_starts_at_once_do_not_collide() -> None:
    """And each stops all that it started, whether it comes to its end or is told to end."""
    harnesses = [_start(name) for name in ("one", "two")]
    try:
        said = [_said(harness) for harness in harnesses]
        assert all(len(words) == 2 for words in said), said
        assert len({address for _, address in said}) == 2
    finally:
        harnesses[1].terminate()
        harnesses[1].wait(timeout=60)
        for harness in harnesses:
            _let_go(harness)
    assert [harness.returncode for harness in harnesses] == [0, -signal.SIGINT]
    left = {one.id for one in Clusters().all()} & {words[0] for words in said}
    assert not left
