"""A run is resumed only where nothing goes on with it, under whatever Dagster run."""

from collections.abc import Iterator

import dagster as dg
import pytest

from factory.control.going_on import refuse_while_going_on
from factory.control.kube.chain import ADOPTS
from factory.control.kube.handles import GOES_ON, Journal
from factory.control.resuming import RESUMES
from factory.errors import SpecError
from tests.control.a_run import STEP, a_run, handle

ALONE = {GOES_ON: "true"}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def refusal(instance: dg.DagsterInstance, run_id: str, of: dg.DagsterRun | None = None) -> str:
    """What is said against it; nothing if it may be resumed."""
    try:
        refuse_while_going_on(instance, run_id, of=of)
    except SpecError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("status", ["FAILURE", "SUCCESS", "CANCELED"])
def test_one_that_has_ended_may_be_resumed(instance: dg.DagsterInstance, status: str) -> None:
    run = a_run(instance, status)
    a_run(instance, "FAILURE", {RESUMES: run.run_id})
    a_run(instance, "STARTED")  # of something else
    assert refusal(instance, run.run_id) == ""


def test_one_that_goes_on_without_a_process_is_to_be_followed(instance: dg.DagsterInstance) -> None:
    run = a_run(instance, tags=ALONE)
    assert f"`factory follow {run.run_id}`" in refusal(instance, run.run_id)


def test_one_that_another_has_taken_up_goes_on(instance: dg.DagsterInstance) -> None:
    run = a_run(instance, tags=ALONE)
    other = a_run(instance, "STARTED", {ADOPTS: run.run_id, **ALONE})
    assert f"still going on ({other.run_id})" in refusal(instance, run.run_id)


def test_one_that_was_resumed_goes_on_as_that(instance: dg.DagsterInstance) -> None:
    run = a_run(instance)
    resumed = a_run(instance, "FAILURE", {RESUMES: run.run_id, **ALONE})
    assert f"`factory follow {resumed.run_id}`" in refusal(instance, run.run_id)
    adopter = a_run(instance, "STARTED", {ADOPTS: resumed.run_id})
    assert f"still going on ({adopter.run_id})" in refusal(instance, run.run_id)


def test_of_two_that_are_to_resume_a_run_the_earlier_does(instance: dg.DagsterInstance) -> None:
    """As from the launchpad, with the tag alone."""
    run = a_run(instance)
    first, second = (a_run(instance, "STARTED", {RESUMES: run.run_id}) for _ in range(2))
    assert refusal(instance, run.run_id, of=first) == ""
    assert f"({first.run_id})" in refusal(instance, run.run_id, of=second)
    Journal(instance, second, STEP).record(handle(second), "it has begun all the same")
    assert f"({second.run_id})" in refusal(instance, run.run_id, of=first)


def test_what_its_own_chain_has_left_is_not_in_the_way(instance: dg.DagsterInstance) -> None:
    run = a_run(instance)
    before = a_run(instance, "FAILURE", {RESUMES: run.run_id, **ALONE})
    again = a_run(instance, "STARTED", again=before)
    assert refusal(instance, run.run_id, of=again) == ""
