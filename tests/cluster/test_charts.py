"""The charts, without a server: helm lints and renders them, and refuses what is wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from factory.control.kube.rayjob import rayjob
from factory.control.kube.rights import needed
from tests.cluster.api import Object
from tests.cluster.helm import COMPUTE_PLANE, PLATFORM, Helm, HelmFailed, one
from tests.conftest import CHECKOUT
from tests.control.a_cluster import CPU, a_cluster, file
from tests.control.kube.submissions import launch, private, submission

pytestmark = pytest.mark.cluster

NFS = {"nfs": {"server": "files.example", "path": "/exports/public"}}
VOLUME = {"capacity": "1Ti", "source": NFS}
SHAPES: list[dict[str, Any]] = [{}, CPU, {"scheduler": "default"}]


def values(folder: Path, plane: dict[str, Any] | None = None, **changes: Any) -> str:
    """The argument that gives helm a cluster's file, with some of its fields changed."""
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(file(**changes) | ({"plane": plane} if plane else {})))
    return f"--values={path}"


def rendered(helm: Helm, folder: Path, *more: str, **changes: Any) -> list[Object]:
    return helm.rendered(COMPUTE_PLANE, values(folder, **changes), *more)


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


@pytest.mark.parametrize("changes", SHAPES, ids=["gpu", "cpu", "own"])
def test_it_is_linted(helm: Helm, tmp_path: Path, changes: dict[str, Any]) -> None:
    assert "0 chart(s) failed" in helm.lint(COMPUTE_PLANE, values(tmp_path, **changes))


def test_the_file_that_the_page_shows_is_rendered_as_it_is(helm: Helm, tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / "add-a-cluster.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "gpu-west.yaml").write_text(shown)
    made = helm.rendered(COMPUTE_PLANE, f"--values={tmp_path / 'gpu-west.yaml'}")
    assert one(made, "Namespace", "training")


def test_every_object_says_whose_it_is(helm: Helm, tmp_path: Path) -> None:
    plane = {"storage": {"public": VOLUME}, "create_topology": True}
    level = "example.com/block"
    topology = {"name": "racks", "levels": [level], "required": level}
    made = rendered(helm, tmp_path, plane=plane, nodes={"topology": topology})
    assert {one["kind"] for one in made} >= {"Namespace", "Topology", "PersistentVolumeClaim"}
    for each in made:
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "compute-plane"
        assert labels["app.kubernetes.io/instance"] == "west"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["app.kubernetes.io/part-of"] == "ai-factory"
    names = [(each["kind"], each["metadata"]["name"]) for each in made]
    assert len(names) == len(set(names))
    assert one(made, "Topology", "racks")["spec"] == {"levels": [{"nodeLabel": level}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tree": {"private": {"claim": "namespace-public"}}}, "claim namespace-public holds the"),
        ({"mounts": [{"path": "/m", "claim": "namespace-private"}]}, "public runs would mount it"),
        (
            {
                "pod_security": "privileged",
                "tree": {
                    "public": {"host_path": "/data/private/in", "claim": None},
                    "private": {"host_path": "/data/private", "claim": None},
                },
            },
            "lie in each other",
        ),
        (
            {
                "pod_security": "privileged",
                "tree": {
                    "public": {"host_path": "/", "claim": None},
                    "private": {"host_path": "/data/private", "claim": None},
                },
            },
            "lie in each other",
        ),
        ({"namespace": "ai-factory"}, "cannot hold the release that makes it"),
        ({"plane": {"account": {"namespace": "training"}}}, "could mount its token"),
        ({"plane": {"shares": {"probe": {"priority": 60}}}}, "training must be above"),
        ({"plane": {"shares": {"parent": "smoke"}}}, "queues.smoke is smoke, the parent"),
        (
            {"queues": {"probe": {"priority_class": "training"}}},
            "queues.probe and queues.training have the priority_class training",
        ),
        (
            {"plane": {"network": {"egress": [{"cidr": "999.1.1.1/99"}]}}},
            "/plane/network/egress/0/cidr': '999.1.1.1/99' does not match",
        ),
        ({"namespace": 123}, "at '/namespace': got number, want string"),
        (
            {"plane": {"storage": {"private": VOLUME}}, "tree": {"private": None}},
            "plane.storage.private makes a claim, and tree.private names none",
        ),
        ({"plane": {"quotas": {}}}, "'quotas' not allowed"),
        ({"namespaces": "training"}, "'namespaces' not allowed"),
        ({"token": None}, "missing property 'token'"),
        ({"plane": {"quota": {"pods": 0}}}, "minimum: got 0, want 1"),
    ],
)
def test_wrong_values_are_refused(
    helm: Helm, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(HelmFailed) as caught:
        rendered(helm, tmp_path, **changes)
    assert message in " ".join(str(caught.value).split())


def nfs(path: str, server: str = "files.example", **more: Any) -> dict[str, Any]:
    return {"nfs": {"server": server, "path": path, **more}}


def csi(handle: str, driver: str = "files.csi.example", **attributes: str) -> dict[str, Any]:
    return {"csi": {"driver": driver, "volumeHandle": handle, "volumeAttributes": attributes}}


def stored(public: dict[str, Any], private: dict[str, Any]) -> dict[str, Any]:
    both = {"public": public, "private": private}
    return {"storage": {name: {"capacity": "1Ti", "source": one} for name, one in both.items()}}


OF_NFS = "nfs.csi.k8s.io"


@pytest.mark.parametrize(
    ("public", "private"),
    [
        (nfs("/ns"), nfs("/ns")),
        (nfs("/ns"), nfs("/ns/private")),
        (nfs("/ns/private/text"), nfs("/ns/private")),
        (nfs("/"), nfs("/ns/private")),
        (nfs("/ns"), nfs("/ns", readOnly=True)),
        (nfs("/ns"), nfs("/ns/private", server="FILES.example.")),
        (nfs("/ns"), csi("a", OF_NFS, server="files.example", share="/ns", subDir="private")),
        (csi("a", OF_NFS, server="files.example", share="/ns"), nfs("/ns/private")),
        (
            csi("a", OF_NFS, server="x", share="/", subDir="ns"),
            csi("b", OF_NFS, server="X", share="/ns"),
        ),
        (csi("fs-1"), csi("fs-1")),
        (csi("fs-1"), csi("fs-1:/private")),
        (csi("fs-1:/"), csi("fs-1:/private")),
        (csi("a", root="/ns", pool="x"), csi("b", root="/ns/private", pool="x")),
        (csi("a", pool="x"), csi("b", root="/private", pool="x")),
    ],
)
def test_a_public_volume_holds_no_private_tree(
    helm: Helm, tmp_path: Path, public: dict[str, Any], private: dict[str, Any]
) -> None:
    with pytest.raises(HelmFailed, match="lie in each other, and public runs would see the priv"):
        rendered(helm, tmp_path, plane=stored(public, private))


@pytest.mark.parametrize(
    ("public", "private"),
    [
        (nfs("/ns/public"), nfs("/ns/private")),
        (nfs("/ns"), nfs("/ns-private")),
        (nfs("/ns"), nfs("/ns/private", server="other.example")),
        (nfs("/ns"), csi("a", OF_NFS, server="files.example", share="/private")),
        (nfs("/ns"), csi("a", root="/ns")),
        (csi("fs-1:/public"), csi("fs-1:/private")),
        (csi("a", encrypted="true"), csi("b", encrypted="true")),
        (csi("a", root="/ns", pool="x"), csi("b", root="/ns", pool="z")),
    ],
)
def test_volumes_that_lie_apart_are_made(
    helm: Helm, tmp_path: Path, public: dict[str, Any], private: dict[str, Any]
) -> None:
    made = of_kind(rendered(helm, tmp_path, plane=stored(public, private)), "PersistentVolume")
    for name, source in (("public", public), ("private", private)):
        spec = made[f"training-namespace-{name}"]["spec"]
        assert spec.items() >= source.items()
        assert spec["claimRef"]["name"] == f"namespace-{name}"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"persistentVolumeReclaimPolicy": "Delete"}, "'persistentVolumeReclaimPolicy' not allow"),
        ({"claimRef": {"name": "other"}}, "'claimRef' not allowed"),
        ({"hostPath": {"path": "/"}}, "'hostPath' not allowed"),
        ({**NFS, "claimRef": {}}, "'claimRef' not allowed"),
        ({}, "minProperties: got 0, want 1"),
        ({"nfs": None}, "plane.storage.public.source"),
        (nfs("/ns/"), "'/ns/' does not match pattern"),
        (nfs("/ns/../other"), "'/ns/../other' does not match pattern"),
        (nfs("/ns", server="a b"), "'a b' does not match pattern"),
        (nfs("/ns", subPath="x"), "'subPath' not allowed"),
        (csi("fs-1:/a/../private"), 'has "fs-1:/a/../private" in it: write the path without'),
        (csi("a", share="/a/.."), "plane.storage.public.source has"),
    ],
)
def test_a_source_is_a_volume_and_nothing_else(
    helm: Helm, tmp_path: Path, source: dict[str, Any], message: str
) -> None:
    storage = {"public": {"capacity": "1Ti", "source": source}}
    with pytest.raises(HelmFailed) as caught:
        rendered(helm, tmp_path, plane={"storage": storage})
    assert message in " ".join(str(caught.value).split())


@pytest.mark.parametrize("word", ["123", "true", "null", "0x1f", "no"])
def test_names_stay_texts(helm: Helm, tmp_path: Path, word: str) -> None:
    """YAML takes some names for numbers and the like, and a server then refuses the object."""
    plane = {
        "account": {"name": word, "namespace": f"{word}-a"},
        "shares": {"parent": f"{word}-p"},
        "network": {"operator_namespace": word, "dns_namespace": word},
        "storage": {"public": VOLUME},
        "create_topology": True,
    }
    queue = {"name": word, "priority_class": word}
    topology = {"name": word, "levels": ["a"], "required": "a"}
    made = rendered(
        helm,
        tmp_path,
        plane=plane,
        name=word,
        namespace=word,
        queues={"training": queue, "smoke": None, "probe": None},
        nodes={"topology": topology},
        tree={"public": {"claim": word}},
    )
    for each in made:
        metadata = each["metadata"]
        texts = [metadata["name"], metadata.get("namespace", ""), *metadata["labels"].values()]
        assert all(isinstance(text, str) for text in texts), each
    assert one(made, "Queue", word)["spec"]["displayName"] == f"training of {word}"
    assert one(made, "Queue", f"{word}-p")["spec"]["displayName"] == word
    assert one(made, "RoleBinding", word)["subjects"][0]["name"] == word
    assert one(made, "PersistentVolume", f"{word}-{word}")["spec"]["claimRef"]["name"] == word
    (source, *_) = one(made, "NetworkPolicy", "dashboard")["spec"]["ingress"][0]["from"]
    labels = source["namespaceSelector"]["matchLabels"]
    assert labels == {"kubernetes.io/metadata.name": word}


def test_an_older_kubernetes_is_refused(helm: Helm, tmp_path: Path) -> None:
    with pytest.raises(HelmFailed, match="requires kubeVersion"):
        helm("template", COMPUTE_PLANE, "--kube-version", "1.29.9", values(tmp_path))


@pytest.mark.parametrize("scheduler", ["kai", "default"])
@pytest.mark.parametrize(
    "dashboard", [{}, {"route": "template", "template": "https://{cluster}.example"}]
)
def test_the_role_is_what_that_cluster_takes(
    helm: Helm, tmp_path: Path, scheduler: str, dashboard: dict[str, str]
) -> None:
    changes = {"scheduler": scheduler, "dashboard": dashboard}
    rules = one(rendered(helm, tmp_path, **changes), "Role", "factory")["rules"]
    granted = {(each["apiGroups"][0], each["resources"][0]): each["verbs"] for each in rules}
    assert len(granted) == len(rules)
    assert granted == {
        (right.group, right.resource): list(right.verbs) for right in needed(a_cluster(**changes))
    }


def test_the_account_lies_where_no_pod_of_a_run_can_name_it(helm: Helm, tmp_path: Path) -> None:
    made = rendered(helm, tmp_path)
    binding = one(made, "RoleBinding", "factory")
    assert binding["metadata"]["namespace"] == "training"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "factory", "namespace": "ai-factory"}
    ]
    for kind, name in (("ServiceAccount", "factory"), ("Secret", "factory-token")):
        assert one(made, kind, name)["metadata"]["namespace"] == "ai-factory"
    without = rendered(helm, tmp_path, "--set=plane.account.token_secret=false")
    assert of_kind(without, "Secret") == {}
    there = rendered(helm, tmp_path, plane={"account": {"create": False, "namespace": "dagster"}})
    assert of_kind(there, "ServiceAccount") == of_kind(there, "Secret") == {}
    assert one(there, "RoleBinding", "factory")["subjects"][0]["namespace"] == "dagster"


def test_the_namespace_admits_what_the_file_says(helm: Helm, tmp_path: Path) -> None:
    prefix = "pod-security.kubernetes.io"
    for level in ("restricted", "baseline"):
        changes = {} if level == "restricted" else {"pod_security": level}
        labels = one(rendered(helm, tmp_path, **changes), "Namespace", "training")["metadata"][
            "labels"
        ]
        assert labels[f"{prefix}/enforce"] == level
        assert labels[f"{prefix}/warn"] == labels[f"{prefix}/audit"] == "restricted"
    assert (
        of_kind(rendered(helm, tmp_path, "--set=plane.create_namespace=false"), "Namespace") == {}
    )


def amounts(queue: Object, field: str) -> tuple[float, ...]:
    return tuple(queue["spec"]["resources"][kind][field] for kind in ("gpu", "cpu", "memory"))


def test_training_is_owed_the_cluster_and_a_probe_nothing(helm: Helm, tmp_path: Path) -> None:
    queues = of_kind(rendered(helm, tmp_path), "Queue")
    assert list(queues) == ["factory", "training", "smoke", "probe"]
    assert "parentQueue" not in queues["factory"]["spec"]
    assert {queues[name]["spec"]["parentQueue"] for name in ("training", "smoke", "probe")} == {
        "factory"
    }
    assert amounts(queues["factory"], "quota") == (32, -1, -1)
    assert amounts(queues["training"], "quota") == (32, -1, -1)
    assert amounts(queues["smoke"], "quota") == (8, -1, -1)
    assert amounts(queues["probe"], "quota") == (0, 0, 0)
    for queue in queues.values():
        assert amounts(queue, "limit") == (-1, -1, -1), "0 would let nothing in"
        assert amounts(queue, "overQuotaWeight") == (1, 1, 1)
    assert queues["training"]["spec"]["reclaimMinRuntime"] == "15m"
    assert "reclaimMinRuntime" not in queues["probe"]["spec"]


def test_without_gpus_processors_are_shared_out(helm: Helm, tmp_path: Path) -> None:
    share = {"quota_nodes": 2, "limit_nodes": 3, "weight": 5}
    queues = of_kind(rendered(helm, tmp_path, plane={"shares": {"smoke": share}}, **CPU), "Queue")
    assert amounts(queues["training"], "quota") == (0, 4 * 180_000, -1)
    assert amounts(queues["smoke"], "quota") == (0, 2 * 180_000, -1)
    assert amounts(queues["smoke"], "limit") == (-1, 3 * 180_000, -1)
    assert amounts(queues["smoke"], "overQuotaWeight") == (5, 5, 5)


def test_two_purposes_may_share_a_queue(helm: Helm, tmp_path: Path) -> None:
    same = {"name": "training", "priority_class": "training"}
    made = rendered(helm, tmp_path, queues={"smoke": same, "probe": None})
    assert list(of_kind(made, "Queue")) == ["factory", "training"]
    assert of_kind(made, "PriorityClass")["training"]["value"] == 80


def test_training_comes_before_smoke_and_smoke_before_a_probe(helm: Helm, tmp_path: Path) -> None:
    made = rendered(helm, tmp_path, queues={"smoke": {"priority_class": "smoke"}})
    classes, queues = of_kind(made, "PriorityClass"), of_kind(made, "Queue")
    for found in (
        {name: each["value"] for name, each in classes.items()},
        {name: queues[name]["spec"]["priority"] for name in classes},
    ):
        assert 100 > found["training"] > found["smoke"] > found["probe"] > 0
    assert not any(each["globalDefault"] for each in classes.values())


def test_without_kai_there_are_no_queues_but_the_classes_that_pods_name(
    helm: Helm, tmp_path: Path
) -> None:
    made = rendered(helm, tmp_path, scheduler="default")
    assert of_kind(made, "Queue") == {}
    assert list(of_kind(made, "PriorityClass")) == ["training", "probe"]


def test_a_volume_is_bound_to_its_own_claim(helm: Helm, tmp_path: Path) -> None:
    letters = {"csi": {"driver": "files.csi.example", "volumeHandle": "letters"}}
    storage = {
        "public": {**VOLUME, "mount_options": ["nconnect=8"]},
        "private": {"capacity": "5Ti", "source": letters},
    }
    made = rendered(helm, tmp_path, plane={"storage": storage})
    volumes, claims = of_kind(made, "PersistentVolume"), of_kind(made, "PersistentVolumeClaim")
    assert list(claims) == ["namespace-public", "namespace-private"]
    for name, claim in claims.items():
        volume = volumes[claim["spec"]["volumeName"]]["spec"]
        assert volume["claimRef"]["name"] == name
        assert volume["claimRef"]["namespace"] == claim["metadata"]["namespace"] == "training"
        assert volume["persistentVolumeReclaimPolicy"] == "Retain"
        assert volume["storageClassName"] == claim["spec"]["storageClassName"] == ""
    assert volumes["training-namespace-public"]["spec"]["nfs"] == NFS["nfs"]
    assert volumes["training-namespace-public"]["spec"]["mountOptions"] == ["nconnect=8"]
    assert volumes["training-namespace-private"]["spec"]["csi"] == letters["csi"]


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a selector of a policy chooses a pod with those labels."""
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(
        rule["operator"] == "Exists" and rule["key"] in labels
        for rule in selector.get("matchExpressions", [])
    )


def test_a_run_is_reached_by_its_own_kind_and_its_dashboard_from_outside(
    helm: Helm, tmp_path: Path
) -> None:
    network = {
        "dashboard_cidrs": ["10.0.0.0/28"],
        "dns_cidrs": ["169.254.20.10/32"],
        "egress": [{"cidr": "10.20.0.0/16", "ports": [443]}, {"cidr": "10.30.0.1/32"}],
    }
    made = rendered(helm, tmp_path, plane={"network": network})
    policies = {name: each["spec"] for name, each in of_kind(made, "NetworkPolicy").items()}
    pods: dict[tuple[str, str], dict[str, str]] = {}
    for chosen in (launch(), private()):
        ray = rayjob(submission(chosen))["spec"]["rayClusterSpec"]
        head, worker = ray["headGroupSpec"], ray["workerGroupSpecs"][0]
        for role, group in (("head", head), ("worker", worker)):
            labels = group["template"]["metadata"]["labels"]
            pods[chosen.classification, role] = labels
    applied = {
        pod: {name for name, spec in policies.items() if selects(spec["podSelector"], labels)}
        for pod, labels in pods.items()
    }
    always = {"nothing-unless-allowed", "outside"}
    assert applied == {
        ("public", "head"): always | {"public-runs", "dashboard"},
        ("public", "worker"): always | {"public-runs"},
        ("private", "head"): always | {"private-runs", "dashboard"},
        ("private", "worker"): always | {"private-runs"},
    }
    assert policies["nothing-unless-allowed"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    for own in ("public", "private"):
        spec = policies[f"{own}-runs"]
        ((source,),) = (rule["from"] for rule in spec["ingress"])
        ((target,),) = (rule["to"] for rule in spec["egress"])
        for peer in (source, target):
            assert list(peer) == ["podSelector"], "of this namespace only"
            reached = {pod for pod, labels in pods.items() if selects(peer["podSelector"], labels)}
            assert reached == {(own, "head"), (own, "worker")}
    (rule,) = policies["dashboard"]["ingress"]
    assert rule["ports"] == [{"port": 8265, "protocol": "TCP"}]
    assert [list(peer) for peer in rule["from"]] == [["namespaceSelector"], ["ipBlock"]]
    assert rule["from"][1]["ipBlock"]["cidr"] == "10.0.0.0/28"
    names, store, tracking = policies["outside"]["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    assert names["to"][1]["ipBlock"]["cidr"] == "169.254.20.10/32"
    assert store["ports"] == [{"port": 443, "protocol": "TCP"}]
    assert "ports" not in tracking
    assert (
        of_kind(rendered(helm, tmp_path, "--set=plane.network.create=false"), "NetworkPolicy") == {}
    )


def test_a_quota_counts_objects_and_gpus_only_where_that_is_asked_for(
    helm: Helm, tmp_path: Path
) -> None:
    hard = one(rendered(helm, tmp_path), "ResourceQuota", "factory")["spec"]["hard"]
    assert hard["pods"] == "2000"
    assert hard["count/rayjobs.ray.io"] == "200"
    assert not [name for name in hard if name.startswith("requests.")], "gangs that wait are pods"
    made = rendered(helm, tmp_path, plane={"quota": {"gpus": 512}})
    hard = one(made, "ResourceQuota", "factory")["spec"]["hard"]
    assert hard["requests.nvidia.com/gpu"] == "512"


def test_the_platform_is_linted_without_the_charts_that_it_pins(helm: Helm) -> None:
    found = helm("lint", PLATFORM)
    assert "0 chart(s) failed" in found
    assert "missing these dependencies: kuberay-operator,kai-scheduler" in found
