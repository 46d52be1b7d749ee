"""What a compute plane guards on an API server, and that all of it goes again."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from factory.control.clusters import Kubernetes
from factory.control.kube.rayjob import rayjob, secret
from tests.cluster.api import Api, Object, Refused, eventually
from tests.cluster.compute_plane import NODES, STORAGE, ComputePlane, compute_plane
from tests.cluster.control_plane import ControlPlane
from tests.cluster.helm import Helm, HelmFailed
from tests.control.kube.submissions import launch, private, submission

pytestmark = pytest.mark.cluster

TOKEN = "t" * 43
OWN_SCHEDULER = {"scheduler": "default", "multi_node_without_gang": True}


@pytest.fixture
def another(
    west: ControlPlane, helm: Helm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ComputePlane]:
    """A compute plane of the test's own, which is not installed yet; without KAI."""
    folder = tmp_path_factory.mktemp("plane")
    with compute_plane(west, helm, folder, nodes=NODES, **OWN_SCHEDULER) as made:
        yield made


def pods(cluster: Kubernetes, *, of_private: bool = False) -> dict[str, Object]:
    """The pods of a run, by role, as KubeRay would make them from the templates."""
    chosen = private() if of_private else launch()
    ray = rayjob(submission(chosen, cluster=cluster))["spec"]["rayClusterSpec"]
    worker = ray["workerGroupSpecs"][0]["template"]
    return {"head": ray["headGroupSpec"]["template"], "worker": worker}


def refusal(plane: ComputePlane, pod: Object) -> str:
    """What the server says against a pod."""
    with pytest.raises(Refused) as caught:
        plane.dry_run(pod)
    return str(caught.value)


def test_a_run_of_the_factory_gets_its_pods(installed: ComputePlane) -> None:
    asked = submission(launch(), cluster=installed.cluster)
    api, admin = installed.api, installed.plane.admin
    installed.wait_for_quota(pods="2k")
    jobs = f"/apis/ray.io/v1/namespaces/{installed.namespace}/rayjobs"
    api.create(f"{installed.core}/secrets", secret(asked, TOKEN))
    api.create(jobs, rayjob(asked))
    try:
        roles: list[str] = []

        def all_there() -> bool:
            found = api.items(f"{installed.core}/pods")
            roles[:] = sorted(one["metadata"]["labels"]["ray.io/node-type"] for one in found)
            return len(roles) >= 3

        assert eventually(all_there, seconds=60), roles
        assert roles == ["head", "worker", "worker"]
    finally:
        api.delete(f"{jobs}/{asked.name}")
        api.delete(f"{installed.core}/secrets/{asked.secret_name}")
    assert eventually(lambda: not admin.items(f"{installed.core}/pods"), seconds=120)


@pytest.mark.parametrize("of_private", [False, True], ids=["public", "private"])
@pytest.mark.parametrize("role", ["head", "worker"])
def test_the_pods_of_a_run_are_admitted(
    installed: ComputePlane, of_private: bool, role: str
) -> None:
    made = installed.dry_run(pods(installed.cluster, of_private=of_private)[role])
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in made["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    own = {"namespace-private"} if of_private else set[str]()
    assert claims == {"namespace-public"} | own


PRIVILEGED: list[tuple[dict[str, Any], str]] = [
    ({"hostNetwork": True}, "host namespaces"),
    ({"securityContext": {"runAsUser": 0}}, "runAsUser=0"),
    ({"containers": [{"name": "ray", "image": "r", "securityContext": {}}]}, "capabilities"),
]


@pytest.mark.parametrize(("changes", "reason"), PRIVILEGED)
def test_pods_that_may_more_are_not_admitted(
    installed: ComputePlane, changes: dict[str, Any], reason: str
) -> None:
    pod = deepcopy(pods(installed.cluster)["worker"])
    pod["spec"].update(changes)
    said = refusal(installed, pod)
    assert "violates PodSecurity" in said
    assert reason in said


@pytest.mark.parametrize(
    "volume",
    [
        {"persistentVolumeClaim": {"claimName": "namespace-private"}},
        {"persistentVolumeClaim": {"claimName": "namespace-private", "readOnly": True}},
        {"persistentVolumeClaim": {"claimName": "of-somebody-else"}},
        {"csi": {"driver": "files.csi.example", "volumeAttributes": {"share": "private"}}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "namespace-private"},
        }}}},
    ],
    ids=["claim", "read-only", "unknown", "csi", "clone"],
)  # fmt: skip
@pytest.mark.parametrize("label", ["public", None, "Private", ""])
def test_no_pod_but_of_a_private_run_can_mount_the_private_tree(
    installed: ComputePlane, volume: Object, label: str | None
) -> None:
    pod = deepcopy(pods(installed.cluster)["worker"])
    pod["spec"]["volumes"].append({"name": "letters", **volume})
    labels = pod["metadata"]["labels"]
    labels["ai-factory/classification"] = label
    if label is None:
        del labels["ai-factory/classification"]
    assert "a public run may mount the claims namespace-public" in refusal(installed, pod)


def test_a_private_run_mounts_the_two_trees_and_no_more(installed: ComputePlane) -> None:
    pod = deepcopy(pods(installed.cluster, of_private=True)["worker"])
    other = {"persistentVolumeClaim": {"claimName": "of-somebody-else"}}
    pod["spec"]["volumes"].append({"name": "other", **other})
    assert "namespace-private, namespace-public" in refusal(installed, pod)


def test_no_other_claim_gets_a_volume_of_a_tree(installed: ComputePlane) -> None:
    admin = installed.plane.admin
    claim = {
        "metadata": {"name": "mine"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": f"{installed.namespace}-namespace-private",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    admin.create(claims, claim)
    try:
        bound = eventually(lambda: admin.get(f"{claims}/mine")["status"]["phase"] == "Bound", 3)
        assert not bound
    finally:
        admin.delete(f"{claims}/mine")


def test_a_quota_refuses_a_pod_too_many(another: ComputePlane) -> None:
    another.install(quota={"pods": 1})
    another.wait_for_quota(pods="1")
    first, second = pods(another.cluster).values()
    path = f"{another.core}/pods"
    another.plane.admin.create(path, {**first, "metadata": {"name": "first"}})
    said = refusal(another, second)
    assert "exceeded quota: factory, requested: pods=1, used: pods=1, limited: pods=1" in said
    another.install(quota={"pods": 2})
    another.wait_for_quota(pods="2")
    another.dry_run(second)


def test_without_kai_the_pods_find_their_class(another: ComputePlane) -> None:
    another.install()
    for pod in pods(another.cluster).values():
        assert pod["spec"]["priorityClassName"] == another.cluster.queues["training"].priority_class
        assert another.dry_run(pod)["spec"]["priority"] == 80


def test_an_upgrade_keeps_the_token_and_changes_the_rest(another: ComputePlane) -> None:
    another.install()
    another.take_token()
    token = another.api.token
    policies = f"/apis/networking.k8s.io/v1/namespaces/{another.namespace}/networkpolicies"
    assert len(another.plane.admin.items(policies)) == 5
    another.install(network={"create": False})
    assert another.plane.admin.items(policies) == []
    another.take_token()
    assert another.api.token == token
    assert another.api.items(f"{another.core}/pods") == []


def test_a_priority_cannot_change_and_nothing_breaks_when_one_tries(another: ComputePlane) -> None:
    another.install()
    with pytest.raises(HelmFailed, match="value: Forbidden: may not be changed"):
        another.install(shares={"training": {"priority": 90}})
    another.install(quota={"pods": 7})
    hard = another.plane.admin.get(f"{another.core}/resourcequotas/factory")["spec"]["hard"]
    assert hard["pods"] == "7"


def test_uninstalling_leaves_nothing(another: ComputePlane) -> None:
    before = everything(another.plane.admin)
    another.install(storage=STORAGE)
    another.take_token()
    made = everything(another.plane.admin) - before
    assert {kind for kind, *_ in made} >= {"namespaces", "persistentvolumes", "priorityclasses"}
    another.uninstall()
    assert eventually(lambda: not everything(another.plane.admin) - before, seconds=60), (
        everything(another.plane.admin) - before
    )
    assert another.plane.admin.ask("GET", "/api/v1/nodes").ok
    assert another.api.ask("GET", f"{another.core}/pods").status == 401, "the token has ended"


_COMES_AND_GOES = {"events", "leases", "componentstatuses"}


def everything(admin: Api) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of every object that the server holds."""
    groups = [
        f"/apis/{one['preferredVersion']['groupVersion']}" for one in admin.get("/apis")["groups"]
    ]
    found: set[tuple[str, str, str]] = set()
    for group in ("/api/v1", *groups):
        for resource in admin.get(group)["resources"]:
            plural = resource["name"]
            if "list" not in resource["verbs"] or plural in _COMES_AND_GOES:
                continue
            found |= {
                (plural, one["metadata"].get("namespace", ""), one["metadata"]["name"])
                for one in admin.items(f"{group}/{plural}")
            }
    return found
