"""What follows from what a server answered: each line, and what it says to do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from factory.control.checklist import Line, any_failed
from factory.control.kube.check_lines import Facts, Unseen, lines
from factory.control.kube.queue_lines import queue_line
from factory.control.kube.rights import needed
from tests.control.a_cluster import OWN_SCHEDULER, a_cluster
from tests.control.kube.submissions import IMAGE

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
SERVED = frozenset(
    {
        "ray.io/v1/rayjobs",
        "ray.io/v1/rayclusters",
        "scheduling.run.ai/v2/queues",
        "scheduling.run.ai/v2alpha2/podgroups",
    }
)


def schema(**parts: Any) -> dict[str, Any]:
    """A schema whose objects have these fields, each with fields of its own."""
    return {"properties": {name: schema(**inner) for name, inner in parts.items()}}


def rayjob(**auth: Any) -> dict[str, Any]:
    return schema(spec={"rayClusterSpec": {"rayVersion": {}, "authOptions": auth}})


def node(**changes: Any) -> dict[str, Any]:
    has = {"cpu": "190", "memory": "2000Gi", GPU: "8", "rdma/hca_shared": "8"}
    ready = changes.pop("ready", "True")
    cordoned = changes.pop("cordoned", False)
    return {
        "metadata": {"name": "a"},
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": has | changes,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def queue(**changes: Any) -> dict[str, Any]:
    shape = {"quota": 16, "limit": -1}
    resources = {"gpu": shape, "cpu": shape, "memory": shape, **changes}
    return {
        "spec": {"parentQueue": "gpu-west", "resources": resources},
        "status": {"allocated": {GPU: "12"}},
    }


def claim(phase: str = "Bound", *modes: str) -> dict[str, Any]:
    return {"spec": {"accessModes": [*(modes or ("ReadWriteMany",))]}, "status": {"phase": phase}}


FACTS = Facts(
    cluster=a_cluster(),
    image=IMAGE,
    now=NOW,
    version="v1.34.2",
    certificate_ends=NOW + timedelta(days=300),
    user="system:serviceaccount:training:factory",
    token_ends=NOW + timedelta(days=300),
    missing={right: [] for right in needed(a_cluster())},
    may_everything=False,
    served=SERVED,
    rayjob=rayjob(mode={}, secretName={}),
    podgroup=schema(spec={"queue": {}}, status={"running": {}}),
    operator="1.6.2",
    queues={"training": queue(), "smoke": queue(), "probe": queue()},
    nodes=[node() for _ in range(4)],
    claims={"namespace-public": claim(), "namespace-private": claim()},
)


def found(**changes: Any) -> dict[str, Line]:
    made = lines(replace(FACTS, **changes))
    assert len({line.what for line in made}) == len(made)
    for line in made:
        assert line.action or line.state != "failed", line
    return {line.what: line for line in made}


def test_where_all_is_well_no_line_says_otherwise() -> None:
    assert {line.state for line in found().values()} == {"ok"}
    assert not any_failed(found().values())
    assert found()["address"].found == "https://gpu-west.example:6443, Kubernetes v1.34.2"


@pytest.mark.parametrize(
    ("left", "state"),
    [(timedelta(days=8), "ok"), (timedelta(days=6), "note"), (timedelta(0), "failed")],
)
def test_what_ends_soon_and_what_has_ended(left: timedelta, state: str) -> None:
    for what in ("certificate", "token"):
        line = found(**{f"{what}_ends": NOW + left})[what]
        assert line.state == state
        assert "ends 2026-" in line.found


def test_an_end_that_is_not_known_is_no_fault() -> None:
    assert found(token_ends=None)["token"].state == "note"
    assert found(certificate_ends=None)["certificate"].state == "note"


def test_a_token_that_a_program_renews_may_end_soon() -> None:
    cluster = a_cluster(token={"file": None, "exec": {"command": ["x"]}})
    assert found(cluster=cluster, token_ends=NOW + timedelta(minutes=5))["token"].state == "ok"


def test_a_right_that_is_missing_is_named_with_what_to_add() -> None:
    rights = {right: [] for right in needed(a_cluster())}
    rights[next(right for right in rights if right.resource == "services/proxy")] = ["create"]
    line = found(missing=rights)["may services/proxy"]
    assert (line.state, line.found) == ("failed", "not create")
    assert 'namespace training: apiGroups: [""], resources: [services/proxy], verbs: [create]' in (
        line.action
    )


def test_rights_are_those_of_the_clusters_kind() -> None:
    def resources(**changes: Any) -> set[str]:
        return {right.resource for right in needed(a_cluster(**changes))}

    assert "podgroups" in resources()
    assert "podgroups" not in resources(**OWN_SCHEDULER)
    template = {"route": "template", "template": "https://{service}.example"}
    assert "services/proxy" not in resources(dashboard=template)


def test_an_administrator_is_told() -> None:
    assert found(may_everything=True)["may everything"].state == "note"


def test_kuberays_version_follows_from_its_fields() -> None:
    assert "older than 1.5.1" in found(rayjob=rayjob())["KubeRay"].found
    assert "CRDs of 1.5," in found(rayjob=rayjob(mode={}))["KubeRay"].found
    for old in (rayjob(), rayjob(mode={})):
        assert found(rayjob=old)["KubeRay"].state == "failed"
    assert found(rayjob=Unseen("no"))["KubeRay"].state == "note"


@pytest.mark.parametrize(
    ("operator", "state"),
    [
        ("1.6.1", "failed"),
        ("1.6.2", "ok"),
        ("1.10.0-rc.1", "ok"),
        ("", "ok"),
        ("nightly", "failed"),
    ],
)
def test_an_operator_may_be_older_than_its_crds(operator: str, state: str) -> None:
    assert found(operator=operator)["KubeRay"].state == state


def test_crds_that_are_not_served() -> None:
    without = found(served=SERVED - {"ray.io/v1/rayjobs", "scheduling.run.ai/v2/queues"})
    assert without["KubeRay"].found == "ray.io/v1/rayjobs: not served"
    assert without["KAI"].found == "scheduling.run.ai/v2/queues: not served"
    assert {without["KubeRay"].state, without["KAI"].state} == {"failed"}


def test_a_topology_needs_its_crd() -> None:
    topology = {"name": "r", "levels": ["rack"], "required": "rack"}
    cluster = a_cluster(nodes={"topology": topology})
    assert found(cluster=cluster)["KAI"].found == "kai.scheduler/v1alpha1/topologies: not served"


def test_kais_version_follows_from_its_fields() -> None:
    newest = schema(spec={"preemptionDelay": {}}, status={})
    for group, age in ((newest, "0.17 or newer"), (schema(spec={"queue": {}}, status={}), "0.16")):
        line = found(podgroup=group)["KAI"]
        assert age in line.found
        assert "issues/1968" in line.action
    assert found(podgroup=Unseen("no"))["KAI"].state == "note"


def test_without_kai_there_are_no_gangs_and_no_queues() -> None:
    made = found(cluster=a_cluster(**OWN_SCHEDULER), queues={}, served=SERVED)
    assert made["gangs"].state == "note"
    assert "KAI" not in made


def test_queues() -> None:
    made = found()
    assert made["queue training"].found == "quota 16, limit unlimited GPUs, 12 in use; for training"
    gone = found(queues={"training": Unseen("404", missing=True), "probe": Unseen("403")})
    assert (gone["queue training"].state, gone["queue probe"].state) == ("failed", "note")


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"gpu": {"quota": 0, "limit": 2}}, "note", "quota 0, limit 2"),
        ({"gpu": {"quota": 8}}, "failed", "limit 0 for gpu"),
        ({"cpu": None, "memory": {"limit": 0}}, "failed", "limit 0 for cpu, memory"),
    ],
)
def test_a_queue_that_gives_little(changes: dict[str, Any], state: str, words: str) -> None:
    line = queue_line("training", queue(**changes), has_gpus=True)
    assert line.state == state
    assert words in line.found


def test_a_queue_without_a_parent_or_with_nothing_at_all() -> None:
    orphan = queue()
    del orphan["spec"]["parentQueue"]
    for odd in (orphan, {}, {"spec": 3}):
        assert queue_line("training", odd, has_gpus=True).found == "has no parent"


@pytest.mark.parametrize(
    ("nodes", "state", "words"),
    [
        ([], "failed", "none with nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"),
        ([node(ready="False"), node(cordoned=True)], "failed", "0 of 2"),
        ([node(cpu="95500m")], "failed", "cpu 95.5, not 180"),
        ([node(memory="1000Gi")], "failed", "memory 1000 GiB, not 1900"),
        ([node(memory="2097152000Ki")] * 4, "ok", "4 of 4"),
        ([node(memory="nonsense")], "failed", "memory 0 GiB"),
        ([node(**{GPU: "7"})], "failed", "nvidia.com/gpu 7, not 8"),
        ([node(**{"rdma/hca_shared": "0"})], "failed", "rdma/hca_shared 0, not 8"),
        ([node(), node(cpu="4")], "note", "1 are smaller"),
        ([node(), node()], "note", "2 of 2"),
        ([node()] * 5, "ok", "5 of 5"),
        (Unseen("403"), "note", "may not see it"),
    ],
)
def test_nodes(nodes: Any, state: str, words: str) -> None:
    line = found(nodes=nodes)["nodes"]
    assert line.state == state, line
    assert words in line.found


@pytest.mark.parametrize(
    ("looked", "state"),
    [
        (claim("Pending"), "note"),
        (claim("Lost"), "failed"),
        (claim("Bound", "ReadWriteOnce"), "note"),
        (Unseen("404", missing=True), "failed"),
        (Unseen("403"), "note"),
        ({}, "note"),
    ],
)
def test_claims(looked: Any, state: str) -> None:
    assert found(claims={"namespace-public": looked})["claim namespace-public"].state == state


@pytest.mark.parametrize("image", [None, "", "registry.example/factory:latest", "x" * 500])
def test_an_image_that_is_not_by_digest(image: str | None) -> None:
    line = found(image=image)["image"]
    assert line.state == "failed"
    assert len(line.found) < 200
    assert "FACTORY_IMAGE" in line.action
