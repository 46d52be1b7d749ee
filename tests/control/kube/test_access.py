"""Access follows classification: nothing that one writes shows a public run the private tree."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.control.kube.mounts import refuse_links
from factory.control.kube.rayjob import rayjob
from factory.control.kube.refusals import refusals
from factory.control.kube.submission import Submission
from factory.errors import ClassificationError, SpecError
from factory.namespace import Namespace
from factory.namespace.runs import RunDirectory
from factory.spec import Launch
from tests.control.kube.submissions import RUN_ID, launch, private, submission

INSIDE = "/namespace/private/text/letters"
MOUNTED = {"mounts": [{"path": "/opt/venv", "claim": "venv"}]}


def seen(chosen: Submission) -> list[tuple[Any, Any]]:
    """Volumes and mounts of each pod."""
    cluster = rayjob(chosen)["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    specs = [pod["template"]["spec"] for pod in pods]
    return [
        (spec["volumes"], [one["volumeMounts"] for one in spec["containers"]]) for spec in specs
    ]


def mounted(chosen: Submission) -> list[dict[str, Any]]:
    return [mount for _, of_pod in seen(chosen) for mounts in of_pod for mount in mounts]


def writable(chosen: Submission) -> set[str]:
    return {mount["mountPath"] for mount in mounted(chosen) if not mount.get("readOnly")}


def test_a_public_run_sees_the_public_tree_and_writes_its_own_directory() -> None:
    chosen = submission(cluster=MOUNTED)
    text = json.dumps(seen(chosen))
    assert "private" not in text
    assert "namespace-public" in text
    assert writable(chosen) == {f"/namespace/public/runs/{RUN_ID}", "/tmp", "/dev/shm"}  # noqa: S108
    assert "/namespace" not in {mount["mountPath"] for mount in mounted(chosen)}


def test_a_private_run_sees_both_and_writes_its_own_directory() -> None:
    chosen = submission(private())
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volumes, _ in seen(chosen)
        for volume in volumes
        if "persistentVolumeClaim" in volume
    }
    assert claims == {"namespace-public", "namespace-private"}
    assert writable(chosen) == {f"/namespace/private/runs/{RUN_ID}", "/tmp", "/dev/shm"}  # noqa: S108


def test_the_run_directory_is_all_of_its_volume_that_can_be_written() -> None:
    for chosen in (submission(), submission(private())):
        for mount in mounted(chosen):
            if mount["name"] in ("public", "private") and not mount.get("readOnly"):
                assert mount["subPath"] == f"runs/{RUN_ID}"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "recipe": st.text(min_size=1),
            "mix": st.text(min_size=1),
            "overrides": st.dictionaries(
                st.text(), st.sampled_from(["namespace-private", "../private", "$(X)"])
            ),
        },
    ),
    st.dictionaries(st.text(min_size=1), st.sampled_from([INSIDE, "namespace-private"])),
    st.text(),
    st.text(),
)
def test_no_spec_no_override_and_no_label_changes_what_is_mounted(
    spec: dict[str, Any], rank_environment: dict[str, str], step: str, owner: str
) -> None:
    chosen = submission(
        launch(spec=spec, rank_environment=rank_environment), step_key=step, owner=owner
    )
    assert seen(chosen) == seen(submission())


@pytest.mark.parametrize(
    "label", ["private", "x\nai-factory/classification: private", "a,ai-factory/owner=other"]
)
def test_a_name_stays_the_value_of_its_own_label(label: str) -> None:
    manifest = rayjob(submission(launch(spec={"mix": label, "recipe": label}), owner=label))
    labels = manifest["metadata"]["labels"]
    assert labels["ai-factory/classification"] == "public"
    assert labels.keys() == rayjob(submission())["metadata"]["labels"].keys()


@pytest.mark.parametrize(
    "run_id",
    [
        "../../private/runs/x",
        "..",
        ".",
        "",
        "x/../../private",
        "/private",
        "a b",
        "A",
        "x" * 65,
        "a\n",
    ],
)
def test_a_run_id_is_no_path(run_id: str) -> None:
    with pytest.raises(SpecError, match="cannot be a directory"):
        rayjob(submission(launch(run_id=run_id)))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("private/text/letters/energon/train", "The run is public and reads private/text/letters"),
        ("public/../private/text/letters", "has the segment '..'"),
        ("/private/text/letters", "starts with ''; a key starts with public/ or private/"),
        ("./private/text/letters", "starts with '.'"),
        ("PRIVATE/text/letters", "starts with 'PRIVATE'"),
        ("public//private/x", "has the segment ''"),
    ],
)
def test_a_public_run_cannot_name_private_data(key: str, message: str) -> None:
    (said,) = refusals(submission(launch(datasets={key: "1", "public/text/plos/raw": "2"})))
    assert message in said


@pytest.mark.parametrize("classification", ["Public", "private ", "", "public/../private", None])
def test_there_are_two_classifications(classification: Any) -> None:
    """Also where the model that checks it was gone around."""
    forged = Launch.model_construct(**{**launch().__dict__, "classification": classification})
    with pytest.raises(SpecError, match="A run is public or private, not"):
        rayjob(submission(forged))


@pytest.mark.parametrize("name", ["FACTORY_ROOT", "HOME", "RAY_AUTH_TOKEN", "dagster_pipes_x"])
def test_what_pipes_hands_over_cannot_move_the_namespace(name: str) -> None:
    with pytest.raises(SpecError, match=f"{name}: only Pipes' own variables"):
        rayjob(submission(environment={name: INSIDE}))


class TestLinks:
    @pytest.fixture
    def run(self, tmp_path: Path) -> RunDirectory:
        (tmp_path / "private/runs/run-1").mkdir(parents=True)
        (tmp_path / "public").mkdir()
        return RunDirectory("public", "run-1", tmp_path)

    def test_a_directory_that_the_factory_made(self, tmp_path: Path) -> None:
        refuse_links(Namespace(tmp_path).open_run("public", "run-1"))

    def test_a_namespace_that_is_reached_by_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "linked").symlink_to("real")
        refuse_links(Namespace(tmp_path / "linked").open_run("public", "run-1"))

    @pytest.mark.parametrize("target", ["../../private/runs/run-1", "../../private", "other"])
    def test_a_run_that_is_a_link(self, run: RunDirectory, target: str) -> None:
        (run.root / "public/runs/other").mkdir(parents=True)
        run.path.symlink_to(target)
        with pytest.raises(
            ClassificationError, match="public/runs/run-1 is reached through a link"
        ):
            refuse_links(run)

    def test_runs_that_are_a_link(self, run: RunDirectory) -> None:
        (run.root / "public/runs").symlink_to("../private/runs")
        with pytest.raises(ClassificationError, match=r"it lies in .*/private/runs/run-1, not in"):
            refuse_links(run)

    def test_a_tree_that_is_a_link(self, run: RunDirectory) -> None:
        (run.root / "public").rmdir()
        (run.root / "public").symlink_to("private")
        with pytest.raises(ClassificationError, match="is reached through a link"):
            refuse_links(run)
