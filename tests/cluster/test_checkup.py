"""`factory cluster check` and `factory manifest --server` against API servers that are real."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.control.checklist import Line, any_failed
from factory.control.clusters import Kubernetes
from factory.control.kube.api import Patience, connect
from factory.control.kube.checkup import checkup
from factory.control.kube.preview import Preview, validate
from factory.control.kube.rayjob import rayjob
from factory.errors import ClusterRefused
from tests.cluster.access import Account
from tests.cluster.api import eventually
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import SHAPE
from tests.control.a_cluster import a_cluster
from tests.control.kube.submissions import IMAGE, launch, submission

pytestmark = pytest.mark.cluster

RIGHTS = ("rayjobs", "rayclusters", "pods", "pods/log", "events", "secrets", "services/proxy")
NODES = {"count": 2, "cpus": 64, "memory_gib": 512, "network_devices": None}
OWN_SCHEDULER = {"scheduler": "default", "multi_node_without_gang": True}

type Declared = Callable[..., Kubernetes]


@pytest.fixture
def declared(west: ControlPlane, training: str, tmp_path: Path) -> Declared:
    """The first cluster as a file would declare it, for the holder of a token."""

    def declare(token: str, **changes: Any) -> Kubernetes:
        path = tmp_path / "token"
        path.write_text(token)
        fields = {
            "api_server": west.address,
            "ca": {"file": str(west.ca)},
            "token": {"file": str(path)},
            "namespace": training,
            "nodes": NODES,
            **OWN_SCHEDULER,
            **changes,
        }
        return a_cluster(**fields)

    return declare


def checked(cluster: Kubernetes) -> dict[str, Line]:
    found = checkup(cluster, IMAGE)
    for line in found:
        assert line.action or line.state != "failed", line
    return {line.what: line for line in found}


def test_a_token_with_the_rights_of_the_factory(declared: Declared, account: Account) -> None:
    found = checked(declared(account.token()))
    assert not any_failed(found.values()), found
    assert {found[f"may {one}"].state for one in RIGHTS} == {"ok"}
    assert "may everything" not in found
    assert account.subject in found["token"].found
    assert found["KubeRay"].state == "ok"
    assert "CRDs of 1.6 or newer" in found["KubeRay"].found
    assert "is that of `ca`, ends 20" in found["certificate"].found
    for unseen in ("nodes", "claim namespace-public"):
        assert (found[unseen].state, found[unseen].found) == ("note", "the token may not see it")


def test_a_token_without_rights(declared: Declared, west: ControlPlane, training: str) -> None:
    account = f"/api/v1/namespaces/{training}/serviceaccounts/default"
    assert eventually(lambda: west.admin.exists(account))  # a controller makes it
    path = f"{account}/token"
    token = west.admin.create(path, {"spec": {}})["status"]["token"]
    found = checked(declared(token))
    assert {found[f"may {one}"].state for one in RIGHTS} == {"failed"}
    assert found["may rayjobs"].found == "not get, list, create, delete"
    assert 'apiGroups: ["ray.io"], resources: [rayjobs]' in found["may rayjobs"].action


def test_the_rights_count_in_their_own_namespace_only(declared: Declared, account: Account) -> None:
    found = checked(declared(account.token(), namespace="default"))
    assert {found[f"may {one}"].state for one in RIGHTS} == {"failed"}


def test_an_administrator_sees_nodes_and_claims(
    declared: Declared, west: ControlPlane, training: str, gpu_nodes: list[str]
) -> None:
    claim = {
        "metadata": {"name": "namespace-public"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    west.admin.create(f"/api/v1/namespaces/{training}/persistentvolumeclaims", claim)
    found = checked(declared(west.admin.token))
    assert found["may everything"].state == "note"
    assert found["nodes"].state == "ok", found["nodes"]
    assert found["nodes"].found.startswith("2 of 2 with nvidia.com/gpu.product=")
    assert "does not say when it ends" in found["token"].found
    assert found["claim namespace-public"].found == "Pending, ReadWriteMany"
    assert found["claim namespace-private"].state == "failed"
    assert "Make the PersistentVolumeClaim namespace-private" in (
        found["claim namespace-private"].action
    )


def test_nodes_that_are_smaller_than_declared(
    declared: Declared, west: ControlPlane, gpu_nodes: list[str]
) -> None:
    found = checked(declared(west.admin.token, nodes={**NODES, "cpus": 180}))
    assert found["nodes"].state == "failed"
    assert f"cpu {SHAPE['cpu']}, not 180" in found["nodes"].found


def test_crds_that_are_missing(declared: Declared, account: Account) -> None:
    found = checked(declared(account.token(), scheduler="kai", multi_node_without_gang=False))
    assert found["KAI"].state == "failed"
    assert "scheduling.run.ai/v2/queues, scheduling.run.ai/v2alpha2/podgroups" in found["KAI"].found
    assert found["may podgroups"].state == "ok"


def test_a_token_that_has_ended(declared: Declared, account: Account) -> None:
    (line,) = checked(declared(account.signed_token(-60))).values()
    assert (line.what, line.state) == ("token", "failed")
    assert "is not taken (401), also when read anew" in line.action
    assert checked(declared(account.signed_token(600)))["token"].state == "note"


def test_the_second_cluster_takes_nothing_of_the_first(
    declared: Declared, account: Account, east: ControlPlane
) -> None:
    (line,) = checked(declared(account.token(), ca={"file": str(east.ca)})).values()
    assert (line.what, line.state) == ("address", "failed")
    assert "does not prove to be that cluster" in line.action
    there = {"api_server": east.address, "ca": {"file": str(east.ca)}}
    (line,) = checked(declared(account.token(), **there)).values()
    assert (line.what, line.state) == ("token", "failed")


def test_a_token_that_is_renewed_in_its_file(
    declared: Declared, account: Account, training: str
) -> None:
    cluster = declared(account.signed_token(-60))
    api = connect(cluster, patience=Patience(budget_seconds=2))
    pods = f"/api/v1/namespaces/{training}/pods"
    with pytest.raises(ClusterRefused, match="401"):
        api.get(pods)
    Path(cluster.token.file or "").write_text(account.token())
    assert api.items(pods) == []
    api.close()


def test_a_manifest_is_validated_and_not_created(
    declared: Declared, account: Account, west: ControlPlane, training: str
) -> None:
    cluster = declared(account.token())
    made = rayjob(submission(launch(), cluster=cluster))
    validate(Preview(made, cluster))
    assert west.admin.items(f"/apis/ray.io/v1/namespaces/{training}/rayjobs") == []
    made["spec"]["entrypiont"] = "typo"
    with pytest.raises(ClusterRefused, match=r"unknown field \"spec.entrypiont\""):
        validate(Preview(made, cluster))
