"""What became of a run: every state that Dagster has, and every way to go on with a run."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.remote_origin import RemoteRepositoryOrigin
from dagster._core.workspace.load_target import get_origins_from_toml

from factory.control.adoption import TRIES
from factory.control.fates import fates, judge
from factory.control.kube.handles import GOES_ON
from factory.control.kube.orphans import GRACE, Known
from factory.control.owner import owner
from factory.settings import CHECKOUT

FINISHED = ("SUCCESS", "FAILURE", "CANCELED")
LINKS = ("root", "resumes", "adopts")
LONG_AGO = timedelta(0)
"""As a grace time: whatever has ended, ended before it began."""


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def a_run(instance: dg.DagsterInstance, status: str, link: str = "", to: str = "") -> str:
    """A run in a state, that goes on with another one."""
    (location,) = get_origins_from_toml(str(CHECKOUT / "pyproject.toml"))
    made = dg.DagsterRun(
        job_name="smoke",
        run_id=str(uuid.uuid4()),
        status=dg.DagsterRunStatus[status],
        remote_job_origin=RemoteRepositoryOrigin(location, "factory").get_job_origin("smoke"),
        root_run_id=to if link == "root" else None,
        parent_run_id=to if link == "root" else None,
        tags={f"factory/{link}": to} if link in ("resumes", "adopts") else {},
    )
    return instance.add_run(made).run_id


def asked(instance: dg.DagsterInstance, *runs: str, grace: timedelta = LONG_AGO) -> Known:
    return fates(instance, runs, grace=grace)


def test_a_run_that_dagster_does_not_know(instance: dg.DagsterInstance) -> None:
    assert asked(instance, "none") == {}
    assert asked(instance) == {}


@pytest.mark.parametrize("status", [one.name for one in dg.DagsterRunStatus])
def test_every_state_but_three_goes_on(instance: dg.DagsterInstance, status: str) -> None:
    run = a_run(instance, status)
    fate = asked(instance, run)[run]
    assert (fate.ended is not None) == (status in FINISHED)
    assert fate.words == status.lower()


def test_an_end_is_when_dagster_saw_it(instance: dg.DagsterInstance) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    run = a_run(instance, "STARTED")
    found = instance.get_run_by_id(run)
    assert found is not None
    instance.report_run_failed(found)
    ended = asked(instance, run)[run].ended
    assert ended is not None
    assert before < ended < datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("status", ["QUEUED", "STARTING", "STARTED", "CANCELING"])
def test_a_run_is_not_over_while_another_goes_on_with_it(
    instance: dg.DagsterInstance, link: str, status: str
) -> None:
    run = a_run(instance, "FAILURE")
    a_run(instance, status, link, run)
    a_run(instance, "FAILURE", link, run)
    assert asked(instance, run)[run].ended is None


def test_those_that_go_on_with_one_another_are_one_line(instance: dg.DagsterInstance) -> None:
    first = a_run(instance, "CANCELED")
    second = a_run(instance, "FAILURE", "resumes", first)
    third = a_run(instance, "FAILURE", "root", second)
    other = a_run(instance, "FAILURE")
    a_run(instance, "STARTED", "adopts", third)
    found = asked(instance, first, second, third, other)
    assert [found[one].ended for one in (first, second, third)] == [None] * 3
    assert found[other].ended is not None


def test_a_link_to_itself_or_to_nothing_is_no_trap(instance: dg.DagsterInstance) -> None:
    run = a_run(instance, "STARTED", "resumes", "gone")
    instance.add_run_tags(run, {"factory/adopts": run})
    assert asked(instance, run, "gone").keys() == {run, "gone"}


@pytest.mark.parametrize("link", LINKS)
def test_the_grace_time_begins_with_the_last_that_went_on(
    instance: dg.DagsterInstance, link: str
) -> None:
    run = a_run(instance, "FAILURE")
    ended = asked(instance, run)[run].ended
    assert ended is not None
    last = a_run(instance, "STARTED", link, run)
    found = instance.get_run_by_id(last)
    assert found is not None
    instance.report_run_canceled(found)
    fate = asked(instance, run, grace=GRACE)[run]
    assert fate.ended == asked(instance, last)[last].ended
    assert fate.words == "canceled"
    assert fate.ended is not None
    assert fate.ended > ended


def test_what_a_daemon_is_about_to_take_up_is_not_over_however_long_nobody_was_there(
    instance: dg.DagsterInstance,
) -> None:
    root = a_run(instance, "FAILURE")
    run = a_run(instance, "FAILURE", "adopts", root)
    for one in (root, run):
        instance.add_run_tags(one, {GOES_ON: "true"})
    for adopting in (False, True):
        found = judge(instance, LONG_AGO, adopting=adopting).known({root, run})
        assert [found[one].ended is None for one in (root, run)] == [adopting] * 2
    for _ in range(TRIES):  # and no more than so often
        a_run(instance, "FAILURE", "adopts", run)
    assert judge(instance, LONG_AGO, adopting=True).known({root})[root].ended is not None


def test_a_judge_is_of_its_instance(instance: dg.DagsterInstance) -> None:
    run = a_run(instance, "STARTED")
    made = judge(instance)
    assert (made.owner, made.grace) == (owner(instance), GRACE)
    assert made.known({run, "none"}).keys() == {run}
