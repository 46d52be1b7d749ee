"""The manifest of a run: as snapshots, for any valid spec, and what is refused by name."""

import base64
import json
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from factory.control.clusters import Kubernetes
from factory.control.clusters.queues import Queue
from factory.control.clusters.words import MAX_VARIABLE_BYTES
from factory.control.kube.names import job_name, label_value
from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.refusals import refusals
from factory.control.kube.submission import Submission, installed_ray
from factory.errors import SpecError
from tests.control.a_cluster import CPU, a_cluster
from tests.control.kube.submissions import DIGEST, IMAGE, launch, private, submission

TOKEN = "t" * 43
TOPOLOGY = {"name": "racks", "levels": ["example.com/block", "example.com/rack"]}
EVERYTHING: dict[str, Any] = {
    "pod_security": "privileged",
    "queues": {"training": {"submission": "sidecar", "preemptible": False}},
    "nodes": {
        "locked_memory": True,
        "network_attachments": ["ib-a", "ib-b"],
        "labels": {"example.com/pool": "training"},
        "shared_memory_gib": 256,
        "topology": {
            **TOPOLOGY,
            "required": "example.com/block",
            "preferred": "example.com/rack",
        },
    },
    "tolerations": [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "ml"},
    ],
    "pull_secrets": ["registry"],
    "mounts": [{"path": "/opt/factory/venv", "host_path": "/opt/factory/venv"}],
    "run_as": {"user": 2000, "group": 2001, "groups": [3000]},
    "environment": {"NCCL_SOCKET_IFNAME": "eth0", "PATH": "/opt/factory/venv/bin:/usr/bin:/bin"},
}


def templates(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The pod templates, the head's first."""
    cluster = manifest["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"] for group in groups]


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for template in templates(manifest) for one in template["spec"]["containers"]]


class TestSnapshots:
    def test_a_public_run_of_two_nodes(self, snapshot: SnapshotAssertion) -> None:
        assert rayjob(submission()) == snapshot

    def test_a_private_run_with_everything_that_a_file_can_say(
        self, snapshot: SnapshotAssertion
    ) -> None:
        assert rayjob(submission(private(attempt=3), cluster=EVERYTHING)) == snapshot

    def test_two_nodes_without_gpus_and_without_kai(self, snapshot: SnapshotAssertion) -> None:
        cluster = {**CPU, "scheduler": "default", "multi_node_without_gang": True}
        chosen = launch(profile="cpu", spec={"gpus_per_worker": 0})
        assert rayjob(submission(chosen, cluster=cluster)) == snapshot

    def test_a_probe_whose_head_has_nodes_of_its_own(self, snapshot: SnapshotAssertion) -> None:
        cluster = {
            "head": {"labels": {"example.com/pool": "cpu"}},
            "nodes": {"topology": {**TOPOLOGY, "required": "example.com/rack"}},
        }
        assert rayjob(submission(purpose="probe", cluster=cluster)) == snapshot

    def test_the_secret(self, snapshot: SnapshotAssertion) -> None:
        assert secret(submission(), TOKEN) == snapshot


def test_the_token_is_in_the_secret_alone() -> None:
    chosen = submission()
    data = secret(chosen, TOKEN)["data"]
    assert base64.b64decode(data["auth_token"]).decode() == TOKEN
    assert TOKEN not in json.dumps(rayjob(chosen))
    auth = rayjob(chosen)["spec"]["rayClusterSpec"]["authOptions"]
    assert auth == {"mode": "token", "secretName": secret(chosen, TOKEN)["metadata"]["name"]}


@pytest.mark.parametrize("token", ["", "t" * 31])
def test_a_token_that_keeps_nobody_out(token: str) -> None:
    with pytest.raises(ValueError, match="at least 32 characters"):
        secret(submission(), token)


def test_rays_version_is_that_of_the_lock() -> None:
    chosen = Submission(
        launch=launch(), cluster=a_cluster(), root_run_id="r", owner="o", deployment="prod"
    )
    assert chosen.ray_version == installed_ray()
    assert re.fullmatch(r"2\.\d+\.\d+", installed_ray())


class TestNames:
    @given(st.text(), st.text(), st.integers(min_value=1))
    def test_any_run_has_a_name_that_kuberay_takes(
        self, root: str, step: str, attempt: int
    ) -> None:
        name = job_name(root, step, attempt)
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
        assert len(name) <= 47
        assert name == job_name(root, step, attempt)

    def test_what_differs_has_another_name(self) -> None:
        runs = [("a", "b", 1), ("a", "b", 11), ("ab", "", 1), ("", "ab", 1), ("a", "b1", 1)]
        assert len({job_name(*run) for run in runs}) == len(runs)

    @given(st.text())
    def test_any_text_has_a_label(self, text: str) -> None:
        value = label_value(text)
        assert len(value) <= 63
        assert re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", value)

    @pytest.mark.parametrize("text", ["", "a", "debug.pretrain", "a_b-c.d", "x" * 63])
    def test_a_text_that_is_a_label_stays(self, text: str) -> None:
        assert label_value(text) == text

    def test_texts_that_look_alike_stay_apart(self) -> None:
        texts = ["a b", "a/b", "a-b", "a_b ", "ä", "ö", "日本", "x" * 64, "x" * 65, "\ud800", "\n"]
        assert len({label_value(text) for text in texts}) == len(texts)
        assert max(len(label_value(text)) for text in texts) <= 63


NAMES = st.text(min_size=1, max_size=80)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=50)
"""Of variables: no process can be given another."""

GIB = st.floats(min_value=0.25, max_value=4096)


@st.composite
def clusters(draw: st.DrawFn) -> Kubernetes:
    """Any cluster that a file can declare, within what decides a manifest."""
    gpus = draw(st.integers(0, 16))
    cpus = draw(st.floats(min_value=4, max_value=512))
    memory = draw(st.floats(min_value=16, max_value=4096))
    kai = draw(st.booleans())
    security = draw(st.sampled_from(["restricted", "baseline", "privileged"]))
    modes = ["http"] if security == "restricted" else ["http", "sidecar"]
    queue = st.fixed_dictionaries(
        {"name": st.from_regex(r"\A[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")},
        optional={
            "priority_class": st.sampled_from(["high", "low.example"]),
            "preemptible": st.booleans(),
            "submission": st.sampled_from(modes),
            "grace_seconds": st.floats(min_value=0, max_value=86_400),
        },
    )
    return a_cluster(
        profile="h100" if gpus else "cpu",
        scheduler="kai" if kai else "default",
        multi_node_without_gang=not kai,
        pod_security=security,
        queues={name: draw(queue) for name in ("training", "smoke", "probe")},
        nodes={
            "count": 4096,
            "gpus": gpus,
            "cpus": cpus,
            "memory_gib": memory,
            "locked_memory": draw(st.booleans()),
            "scratch_gib": draw(GIB),
            "topology": {**TOPOLOGY, "required": "example.com/rack"}
            if kai and draw(st.booleans())
            else None,
        },
        head={
            "cpus": draw(st.floats(min_value=0.1, max_value=2)),
            "memory_gib": draw(st.floats(min_value=1, max_value=8)),
            "labels": draw(st.sampled_from([{}, {"pool": "cpu"}])),
        },
        grace_seconds=draw(st.floats(min_value=0, max_value=86_400)),
        environment=draw(st.dictionaries(st.sampled_from(["A", "B_C"]), VALUES)),
    )


@st.composite
def submissions(draw: st.DrawFn) -> Submission:
    """Any submission that a cluster can satisfy."""
    cluster = draw(clusters())
    public = draw(st.booleans())
    hours = st.floats(min_value=1e-6, max_value=1e300)
    purpose = draw(st.sampled_from(["training", "smoke", "probe"]))
    most = cluster.queues[purpose].nodes or 4096
    spec = {
        "workers": draw(st.integers(1, most)),
        "gpus_per_worker": cluster.nodes.gpus,
        "recipe": draw(NAMES),
        "mix": draw(NAMES),
        "run_limit_hours": draw(hours),
        "queue_limit_hours": draw(hours),
        "overrides": draw(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=2)),
    }
    chosen = (launch if public else private)(
        spec=spec,
        profile=cluster.profile,
        run_id=draw(st.from_regex(r"\A[a-z0-9][a-z0-9-]{0,63}\Z")),
        attempt=draw(st.integers(1, 10**30)),
        rank_environment=draw(st.dictionaries(NAMES, NAMES, max_size=2)),
    )
    return submission(
        chosen,
        cluster=cluster,
        purpose=purpose,
        root_run_id=draw(NAMES),
        step_key=draw(NAMES),
        owner=draw(NAMES),
        environment={"DAGSTER_PIPES_CONTEXT": draw(VALUES)},
    )


def check_labels(metadata: dict[str, Any]) -> None:
    for key, value in metadata["labels"].items():
        assert re.fullmatch(
            r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", key
        )
        assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value)


def check_job(manifest: dict[str, Any]) -> None:
    """What KubeRay's own validation asks for, and what the schema lets through."""
    spec = manifest["spec"]
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?", manifest["metadata"]["name"])
    assert spec["submissionMode"] in ("HTTPMode", "SidecarMode")
    assert spec["entrypoint"].strip()
    assert spec["shutdownAfterJobFinishes"] is True
    assert 0 < spec["activeDeadlineSeconds"] < 2**31
    assert spec["backoffLimit"] == 0
    (group,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert group["minReplicas"] == group["replicas"] == group["maxReplicas"] >= 1
    assert "restartPolicy" not in templates(manifest)[0]["spec"]


def check_pod(template: dict[str, Any], gpus: int) -> None:
    spec = template["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & spec.keys()
    assert isinstance(spec["terminationGracePeriodSeconds"], int)
    (container,) = spec["containers"]
    assert container["image"] == IMAGE
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    resources = container["resources"]
    assert resources["requests"] == resources["limits"]
    assert {"cpu", "memory"} <= resources["limits"].keys()
    assert resources["limits"].get("nvidia.com/gpu", "0") == str(gpus)
    for quantity in resources["limits"].values():
        assert re.fullmatch(r"[1-9][0-9]*(m|Mi)?", quantity)
    memory = int(resources["limits"]["memory"].removesuffix("Mi"))
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert 200 < int(volumes["shared-memory"]["emptyDir"]["sizeLimit"].removesuffix("Mi")) < memory
    paths = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert len(set(paths)) == len(paths)
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
    names = [variable["name"] for variable in container["env"]]
    assert names == sorted(set(names))


@settings(max_examples=150)
@given(submissions())
def test_any_valid_submission_gives_a_valid_manifest(chosen: Submission) -> None:
    manifest = rayjob(chosen)
    kai = chosen.cluster.scheduler == "kai"
    check_job(manifest)
    check_labels(manifest["metadata"])
    head, worker = templates(manifest)
    for template, gpus in ((head, 0), (worker, chosen.cluster.nodes.gpus)):
        check_pod(template, gpus)
        check_labels(template["metadata"])
        assert (template["spec"].get("schedulerName") == "kai-scheduler") == kai
    for metadata in (manifest["metadata"], head["metadata"], worker["metadata"]):
        assert metadata["labels"].get("kai.scheduler/queue") == (chosen.queue.name if kai else None)
    size = sum(len(f"{k}{v}") for k, v in manifest["metadata"].get("annotations", {}).items())
    assert size < 1_000  # KAI copies them


@settings(max_examples=50)
@given(submissions())
def test_the_same_submission_gives_the_same_manifest(chosen: Submission) -> None:
    first = rayjob(chosen)
    kept = deepcopy(first)
    for template in templates(first):  # what a caller does to it reaches nobody else
        template["spec"]["containers"][0]["securityContext"].clear()
        template["spec"].get("nodeSelector", {})["x"] = "y"
        template["metadata"]["labels"].clear()
    assert json.dumps(rayjob(chosen)) == json.dumps(kept)


def test_a_deadline_is_a_number_that_kuberay_can_hold() -> None:
    hours = {"run_limit_hours": 1, "queue_limit_hours": 2}
    assert rayjob(submission(launch(spec=hours)))["spec"]["activeDeadlineSeconds"] == 4 * 3600
    endless = launch(spec={**hours, "queue_limit_hours": 1e300})
    assert rayjob(submission(endless))["spec"]["activeDeadlineSeconds"] == 2**31 - 1


def expanded(value: str, known: dict[str, str]) -> str:
    """What a container gets of a value: $$ is $, $(NAME) is replaced if it is known."""

    def one(match: re.Match[str]) -> str:
        name = match["name"]
        return "$" if name is None else known.get(name, match[0])

    return re.sub(r"\$(?:\$|\((?P<name>[^)]*)\))", one, value)


def test_the_rules_of_kubernetes() -> None:
    """As its own tests of the expansion have them."""
    known = {"VAR_A": "A", "VAR_EMPTY": ""}
    for value, result in {
        "$(VAR_A)": "A",
        "___$(VAR_EMPTY)___": "______",
        "$(VAR_DNE)": "$(VAR_DNE)",
        "$$(VAR_A)_$(VAR_A)": "$(VAR_A)_A",
        "$$$$$$$(VAR_A)": "$$$A",
        "$VAR_A)": "$VAR_A)",
        "$$$(": "$$(",
        "foo$": "foo$",
        "$(": "$(",
    }.items():
        assert expanded(value, known) == result


@settings(max_examples=300)
@given(st.text("$()AHOME_ a\n\u00e9", max_size=12))
@example("a$(HOME)b")
@example("$$(HOME)")
@example("a$$b")
@example("$")
def test_a_container_gets_the_values_as_they_are_written(value: str) -> None:
    chosen = submission(environment={"DAGSTER_PIPES_CONTEXT": value})
    env = {one["name"]: one["value"] for one in containers(rayjob(chosen))[0]["env"]}
    assert expanded(env["DAGSTER_PIPES_CONTEXT"], env) == value


def test_what_the_pods_are_given_by_the_factory_is_refused_in_a_file() -> None:
    """It would be overwritten without a word."""
    made = containers(rayjob(submission(environment={})))
    names = {one["name"] for container in made for one in container["env"]}
    assert {"PYTHONUNBUFFERED", "RAY_JOB_STOP_WAIT_TIME_S", "FACTORY_ROOT"} <= names
    for name in sorted(names):
        with pytest.raises(ValidationError, match=f"{name}: the factory sets this itself"):
            a_cluster(environment={name: "1"})


def test_only_the_driver_is_given_what_pipes_says() -> None:
    head, worker = containers(rayjob(submission()))
    assert "DAGSTER_PIPES_CONTEXT" in {variable["name"] for variable in head["env"]}
    assert not any(variable["name"].startswith("DAGSTER") for variable in worker["env"])


def test_the_head_is_shown_no_gpu_and_the_workers_are() -> None:
    head, worker = (
        {v["name"]: v["value"] for v in c["env"]} for c in containers(rayjob(submission()))
    )
    assert head["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in worker


def test_a_worker_leaves_room_for_a_head_and_its_submitter() -> None:
    asked = {
        mode: containers(rayjob(submission(cluster=cluster)))[1]["resources"]["limits"]
        for mode, cluster in {
            "http": {},
            "sidecar": {
                "pod_security": "baseline",
                "queues": {"training": {"submission": "sidecar"}},
            },
            "apart": {"head": {"labels": {"pool": "cpu"}}},
        }.items()
    }
    assert {mode: (one["cpu"], one["memory"]) for mode, one in asked.items()} == {
        "http": ("178000m", f"{1892 * 1024}Mi"),
        "sidecar": ("177000m", f"{1891 * 1024}Mi"),
        "apart": ("180000m", f"{1900 * 1024}Mi"),
    }


def test_the_modes_are_two() -> None:
    assert rayjob(submission())["spec"]["submissionMode"] == "HTTPMode"
    wrong = Queue.model_construct(name="q", submission="K8sJobMode", priority_class=None)
    queues = {"training": wrong}
    with pytest.raises(KeyError, match="K8sJobMode"):
        rayjob(submission(cluster=a_cluster().model_copy(update={"queues": queues})))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (
            submission(launch(spec={"workers": 5})),
            "workers=5: cluster gpu-west has 4 nodes (40 GPUs asked for, 32 there). Use at most 4.",
        ),
        (
            submission(launch(spec={"workers": 4}), purpose="probe"),
            "workers=4: a run in queue probe may have 2 (32 GPUs asked for, 16 there). Use at most",
        ),
        (
            submission(launch(spec={"workers": 4}), cluster={"limits": {"nodes": 3}}),
            "workers=4: cluster gpu-west allows a run 3 (32 GPUs asked for, 24 there).",
        ),
        (
            submission(launch(spec={"gpus_per_worker": 4})),
            "gpus_per_worker=4: a worker takes a whole node, and those of gpu-west have 8 GPUs.",
        ),
        (
            submission(launch(spec={"gpus_per_worker": 16})),
            "gpus_per_worker=16: a worker takes a whole node, and those of gpu-west have 8 GPUs.",
        ),
        (
            submission(purpose="smoke", cluster={"queues": {"smoke": None, "probe": None}}),
            "There is no queue for smoke in definitions/clusters/gpu-west.yaml. Known: training.",
        ),
        (
            submission(cluster={"scheduler": "default"}),
            "workers=2: cluster gpu-west has the default scheduler, which places one pod at a time",
        ),
        (
            submission(cluster={"limits": {"run_hours": 12}}),
            "run_limit_hours=24: cluster gpu-west allows 12.",
        ),
        (
            submission(launch(spec={"cluster": "gpu-east"})),
            "cluster=gpu-east: this is cluster gpu-west.",
        ),
        (
            submission(launch(image=None)),
            "There is no image: a run on gpu-west needs one by digest",
        ),
        (submission(launch(image="")), "There is no image: a run on gpu-west needs one by digest"),
        (submission(launch(image="a:latest")), "image='a:latest': a run on gpu-west needs one by"),
        (submission(launch(image=f"a:1@{DIGEST}")), f"image='a:1@{DIGEST}': a run"),
        (submission(launch(image=f"@{DIGEST}")), f"image='@{DIGEST}': a run"),
        (submission(launch(image=f"a@{DIGEST[:-1]}")), "a run on gpu-west needs one by digest"),
        (submission(launch(image=f"a@{DIGEST}\n")), "a run on gpu-west needs one by digest"),
        (submission(launch(image=f"a b@{DIGEST}")), "a run on gpu-west needs one by digest"),
        (submission(launch(profile="cpu")), "The launch was made for the cpu profile"),
        (submission(private(), cluster={"tree": {"private": None}}), "has no private tree"),
        (
            submission(environment={"DAGSTER_PIPES_CONTEXT": "x" * MAX_VARIABLE_BYTES}),
            "DAGSTER_PIPES_CONTEXT has 131,093 bytes, and no process starts with more than 131,071",
        ),
        (submission(environment={"PATH": "/x"}), "PATH: only Pipes' own variables"),
        (submission(ray_version="nightly"), "Ray 'nightly' is no release"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_a_cluster_cannot_give_is_refused_with_the_numbers(
    chosen: Submission, said: str
) -> None:
    with pytest.raises(SpecError) as refused:
        rayjob(chosen)
    assert said in str(refused.value)
    assert len(refusals(chosen)) == len(str(refused.value).splitlines()) == 1


def test_everything_that_is_wrong_is_said_at_once() -> None:
    chosen = submission(
        launch(image=None, spec={"workers": 9, "gpus_per_worker": 1}), purpose="smoke"
    )
    assert [problem.split("=")[0].split(":")[0] for problem in refusals(chosen)] == [
        "gpus_per_worker",
        "workers",
        "There is no image",
    ]


@pytest.mark.parametrize(
    "image",
    [IMAGE, f"a@{DIGEST}", f"localhost:5000/a/b_c/d.e@{DIGEST}", f"a.b/c--d@{DIGEST}"],
)
def test_images_by_digest(image: str) -> None:
    assert containers(rayjob(submission(launch(image=image))))[0]["image"] == image


def test_one_node_needs_no_gang() -> None:
    chosen = submission(launch(spec={"workers": 1}), cluster={"scheduler": "default"})
    head, worker = templates(rayjob(chosen))
    assert "schedulerName" not in head["spec"]
    assert worker["spec"]["priorityClassName"] == "training"
