"""Attempts to show a public run the private tree, by everything that one can write.

Each is refused in words, or changes nothing of what the pods see. On real pods: `tests/cluster`.
Links are in `test_links`, single rules in `test_access`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.control.kube.rayjob import rayjob
from factory.control.kube.submission import Submission
from factory.control.specs import check
from factory.errors import DeclarationError, SpecError
from factory.spec import Launch, RunSpec
from tests.control.a_cluster import read
from tests.control.kube.submissions import launch, submission

ROOT = "/namespace"
LETTERS = "private/text/letters"
NODES = {"pod_security": "privileged"}
TREES = {"public": {"claim": None, "host_path": "/mnt/ns/public"}}
APART = {**TREES, "private": {"claim": None, "host_path": "/mnt/ns/private"}}

type Attempt = Callable[[], Submission]


def by_spec(**spec: Any) -> Attempt:
    return lambda: submission(launch(spec=spec))


def by_launch(**fields: Any) -> Attempt:
    return lambda: submission(launch(**fields))


def by_forged(**fields: Any) -> Attempt:
    """Past the model."""
    return lambda: submission(Launch.model_construct(**{**launch().__dict__, **fields}))


def by_submission(**fields: Any) -> Attempt:
    return lambda: submission(**fields)


def by_file(**changes: Any) -> Attempt:
    return lambda: submission(cluster=changes)


REFUSED: dict[str, tuple[Attempt, str]] = {
    "an override to weights": (
        by_spec(overrides={"checkpoint.pretrained_checkpoint": f"{ROOT}/private/runs/x"}),
        "lies in the private tree, and the run is public",
    ),
    "an override to a tokenizer": (
        by_spec(overrides={"dataset.tokenizer": f"file://{ROOT}/private/models/x"}),
        "overrides.dataset.tokenizer=file:///namespace/private/models/x: lies in",
    ),
    "an override with ..": (
        by_spec(overrides={"dataset.tokenizer": f"{ROOT}/public/../private/./x"}),
        "lies in the private tree",
    ),
    "an override with //": (
        by_spec(overrides={"dataset.tokenizer": f"/{ROOT}//private/"}),
        "lies in the private tree",
    ),
    "a dataset's key": (
        by_launch(datasets={LETTERS: "1"}),
        f"The run is public and reads {LETTERS}",
    ),
    "a key among public ones": (
        by_launch(datasets={"public/text/plos": "1", f"{LETTERS}/energon/train": "2"}),
        "It must be private",
    ),
    "a key with ..": (by_launch(datasets={f"public/../{LETTERS}": "1"}), "the segment '..'"),
    "a key with an empty part": (by_launch(datasets={f"public//{LETTERS}": "1"}), "segment ''"),
    "a key that is a path": (by_launch(datasets={f"{ROOT}/{LETTERS}": "1"}), "starts with ''"),
    "a key of runs": (by_launch(datasets={"private/runs/x": "1"}), "holds run directories"),
    "a run id with slashes": (by_launch(run_id="a/../../../private"), "cannot be a directory"),
    "a run id that is ..": (by_launch(run_id=".."), "cannot be a directory"),
    "a run id with a NUL": (by_launch(run_id="a\0b"), "cannot be a directory"),
    "a classification with a path": (
        by_forged(classification="public/../private"),
        "A run is public or private",
    ),
    "a classification in capitals": (by_forged(classification="PRIVATE"), "A run is public or"),
    "Pipes moves the namespace": (
        by_submission(environment={"FACTORY_ROOT": f"{ROOT}/private"}),
        "FACTORY_ROOT: only Pipes' own variables",
    ),
    "Pipes preloads": (
        by_submission(environment={"LD_PRELOAD": "/data/x.so"}),
        "LD_PRELOAD: only Pipes' own variables",
    ),
}


@pytest.mark.parametrize(("attempt", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused(attempt: Attempt, words: str) -> None:
    with pytest.raises(SpecError) as refused:
        rayjob(attempt())
    assert words in str(refused.value)


FILES: dict[str, tuple[dict[str, Any], str]] = {
    "the private tree itself": (
        {"mounts": [{"path": "/data", "claim": "namespace-private"}]},
        "would show the private tree to public runs",
    ),
    "its directory": (
        {**NODES, "tree": APART, "mounts": [{"path": "/data", "host_path": "/mnt/ns/private"}]},
        "would show the private tree to public runs",
    ),
    "a directory in it": (
        {**NODES, "tree": APART, "mounts": [{"path": "/data", "host_path": "/mnt/ns/private/x"}]},
        "would show the private tree to public runs",
    ),
    "a directory above it": (
        {**NODES, "tree": APART, "mounts": [{"path": "/data", "host_path": "/mnt"}]},
        "would show the private tree to public runs",
    ),
    "what lies beside the public tree, where no private one is declared": (
        {
            **NODES,
            "tree": {**TREES, "private": None},
            "mounts": [{"path": "/data", "host_path": "/mnt/ns/private"}],
        },
        "would show /mnt/ns, where the namespace lies with both of its trees",
    ),
    "its place in the namespace": (
        {"mounts": [{"path": f"{ROOT}/private", "claim": "other"}]},
        "covers the namespace at /namespace",
    ),
    "a place above the namespace": (
        {"tree": {"path": "/srv/namespace"}, "mounts": [{"path": "/srv", "claim": "other"}]},
        "covers the namespace at /srv/namespace",
    ),
    "a public tree that is both": (
        {**NODES, "tree": {**APART, "public": {"claim": None, "host_path": "/mnt/ns"}}},
        "public and private are one volume, or one lies in the other",
    ),
    "one claim for both": (
        {"tree": {"private": {"claim": "namespace-public"}}},
        "public and private are one volume",
    ),
    "the volumes of all pods of a node": (
        {**NODES, "mounts": [{"path": "/data", "host_path": "/var/lib/kubelet/pods"}]},
        "would show /var/lib/kubelet of a node",
    ),
    "the processes of a node": (
        {**NODES, "mounts": [{"path": "/data", "host_path": "/proc"}]},
        "would show /proc of a node",
    ),
    "a node": (
        {**NODES, "mounts": [{"path": "/data", "host_path": "/"}]},
        "reaches what other pods there have mounted",
    ),
    "a public tree that is a node": (
        {**NODES, "tree": {"public": {"claim": None, "host_path": "/"}}},
        "reaches what other pods there have mounted",
    ),
    "a path with ..": (
        {**NODES, "mounts": [{"path": "/data", "host_path": "/mnt/x/../ns/private"}]},
        "write a path without ..",
    ),
    "a part of a volume": (
        {"mounts": [{"path": "/data", "claim": "other", "sub_path": "../private"}]},
        "sub_path: no such field",
    ),
    "another root for the containers": (
        {"environment": {"FACTORY_ROOT": f"{ROOT}/private"}},
        "FACTORY_ROOT: the factory sets this itself",
    ),
    "another root for the ranks": (
        {"rank_environment": {"FACTORY_ROOT": f"{ROOT}/private"}},
        "FACTORY_ROOT: the factory sets this itself",
    ),
    "a volume of the pods": ({"volumes": [{"name": "x"}]}, "volumes: no such field"),
}


@pytest.mark.parametrize(("changes", "words"), FILES.values(), ids=FILES.keys())
def test_a_file_cannot_mount(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as refused:
        read(tmp_path, **changes)
    assert words in str(refused.value)


HARMLESS: dict[str, Attempt] = {
    "a recipe": by_spec(recipe=f"{ROOT}/{LETTERS}"),
    "a mix": by_spec(mix="../../private/mixes/x"),
    "an override that is a volume": by_spec(overrides={"volumes": "namespace-private"}),
    "an override that is a variable": by_spec(overrides={"dataset.tokenizer": "$(FACTORY_ROOT)"}),
    "variables of ranks": by_launch(rank_environment={"FACTORY_ROOT": f"{ROOT}/private"}),
    "an owner": by_submission(owner="x\nai-factory/classification: private"),
    "a step": by_submission(step_key="ai-factory/classification=private"),
    "a root run": by_submission(root_run_id="../../private/runs/x"),
    "what Pipes says": by_submission(environment={"DAGSTER_PIPES_CONTEXT": f"{ROOT}/private"}),
    "a label of nodes": by_file(nodes={"labels": {"ai-factory/classification": "private"}}),
    "a group that may read it": by_file(run_as={"groups": [3000]}),
    "a taint": by_file(tolerations=[{"key": "private"}]),
    "a secret to pull with": by_file(pull_secrets=["namespace-private"]),
}


@pytest.mark.parametrize("attempt", HARMLESS.values(), ids=HARMLESS.keys())
def test_it_changes_nothing_of_what_pods_see(attempt: Attempt) -> None:
    made, honest = seen(attempt()), seen(submission())
    assert made == honest
    for volumes, mounted in made:
        assert [one for one in volumes if "persistentVolumeClaim" in one] == [
            {"name": "public", "persistentVolumeClaim": {"claimName": "namespace-public"}}
        ]
        assert not [mount for mount in mounted if "private" in mount["mountPath"]]


def seen(chosen: Submission) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Volumes and mounts of each pod, of which every container is ours."""
    job = rayjob(chosen)
    assert job["metadata"]["labels"]["ai-factory/classification"] == "public"
    cluster = job["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    specs = [pod["template"]["spec"] for pod in pods]
    assert all("initContainers" not in spec for spec in specs)
    return [(spec["volumes"], spec["containers"][0]["volumeMounts"]) for spec in specs]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("mix", "../private/letters", "No mix '../private/letters' in definitions/mixes"),
        ("recipe", f"{ROOT}/{LETTERS}.run", "No recipe"),
        ("cluster", "../../private/cluster", "No cluster '../../private/cluster'"),
    ],
)
def test_a_name_is_no_path(field: str, value: str, words: str) -> None:
    """The gate looks names up among those that are declared."""
    honest = {"recipe": "debug.pretrain", "mix": "smoke", "cluster": "local"}
    with pytest.raises(SpecError) as refused:
        check(RunSpec.model_validate({**honest, field: value}))
    assert words in str(refused.value)
