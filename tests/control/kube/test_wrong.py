"""What cannot run is refused in words, before any server is asked.

A server takes much of it (`tests/cluster/test_submissions.py`), and KubeRay says so only in its own
log, or tries for ever. The five that a RayJob's schema lets through cannot come out of the builder:
shown here for anything that it takes.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import dagster as dg
import pytest

from factory.control.kube.cluster import KubernetesCluster
from factory.control.kube.handles import Journal
from factory.control.kube.rayjob import ENTRYPOINT, rayjob
from factory.control.kube.record import Record
from factory.control.kube.submission import Submission
from factory.errors import DeclarationError, SpecError
from factory.namespace import Namespace
from tests.control.kube.random_submissions import pairs
from tests.control.kube.submissions import RUN_ID
from tests.control.kube.wrong import Asked, Fields, Untouched, Wrong, hand_in
from tests.control.kube.wrong_files import FILES
from tests.control.kube.wrong_launches import LAUNCHES

SEED = 7
VALID = 40
EACH = 3


@pytest.fixture(scope="module")
def valid() -> list[tuple[Fields, Submission]]:
    return list(pairs(SEED, VALID))


def test_there_are_two_hundred_of_them() -> None:
    assert len(FILES + LAUNCHES) * EACH >= 200
    assert len({one.kind for one in FILES + LAUNCHES}) == len(FILES + LAUNCHES)


@pytest.mark.parametrize("one", FILES + LAUNCHES, ids=lambda one: one.kind)
def test_it_is_refused_before_the_server_is_asked(
    one: Wrong, valid: list[tuple[Fields, Submission]], tmp_path: Path
) -> None:
    random = Random(one.kind)
    for chosen in random.sample(valid, EACH):
        with pytest.raises((DeclarationError, SpecError)) as refused:
            hand_in(one, random, chosen, tmp_path)
        assert one.says in str(refused.value)


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def _followed(chosen: Submission, instance: dg.DagsterInstance, root: Path) -> None:
    """Submit it as a run of Dagster does."""
    run = dg.DagsterRun(job_name="train", run_id=RUN_ID)
    cluster = KubernetesCluster(
        Untouched(chosen.cluster),
        chosen,
        Namespace(root).open_run("public", "run-1"),
        Record(Journal(instance, run, "train"), chosen, None),
    )
    cluster.submit(chosen.environment)


@pytest.mark.parametrize(
    "one", [one for one in LAUNCHES if one.submission], ids=lambda one: one.kind
)
def test_who_follows_runs_refuses_it_too_and_writes_nothing_down(
    one: Wrong,
    valid: list[tuple[Fields, Submission]],
    instance: dg.DagsterInstance,
    tmp_path: Path,
) -> None:
    assert one.submission is not None
    chosen = one.submission(Random(one.kind), valid[0][1])
    with pytest.raises(SpecError) as refused:
        _followed(chosen, instance, tmp_path)
    assert one.says in str(refused.value)
    assert list(instance.all_logs(RUN_ID)) == []


def test_what_is_not_broken_reaches_the_server(
    valid: list[tuple[Fields, Submission]], tmp_path: Path
) -> None:
    """Else the test above would hold of anything."""
    for chosen in valid[:5]:
        with pytest.raises(Asked, match=r"POST /apis/ray\.io/v1/namespaces/.*/rayjobs"):
            hand_in(Wrong("nothing", ""), Random(0), chosen, tmp_path)


def _containers(job: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [one for group in groups for one in group["template"]["spec"]["containers"]]


@pytest.fixture(scope="module")
def made(valid: list[tuple[Fields, Submission]]) -> list[dict[str, Any]]:
    return [rayjob(chosen) for _, chosen in valid]


class TestTheFive:
    """Whatever a file and a spec say, the RayJob that comes of it is none of these."""

    def test_a_mode_is_one_of_two(self, made: list[dict[str, Any]]) -> None:
        assert {job["spec"]["submissionMode"] for job in made} == {"HTTPMode", "SidecarMode"}

    def test_the_entrypoint_is_the_driver(self, made: list[dict[str, Any]]) -> None:
        assert {job["spec"]["entrypoint"] for job in made} == {ENTRYPOINT}

    def test_replicas_are_one_number(self, made: list[dict[str, Any]]) -> None:
        for job in made:
            (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
            assert group["minReplicas"] == group["replicas"] == group["maxReplicas"] >= 1

    def test_a_name_has_28_characters(self, made: list[dict[str, Any]]) -> None:
        for job in made:
            assert re.fullmatch(r"run-[0-9a-f]{24}", job["metadata"]["name"])

    def test_an_image_is_named_by_digest(self, made: list[dict[str, Any]]) -> None:
        for job in made:
            for container in _containers(job):
                assert re.fullmatch(r".+@sha256:[0-9a-f]{64}", container["image"])
