"""When the end of a run is told, and when another process is to take it up."""

import contextlib
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster import DagsterExecutionInterruptedError

from factory.control import training
from factory.control.abandoned import OWNER_TAG, owner_tags
from factory.control.adoption import acting_on_the_end, left_alone
from factory.control.kube.handles import GOES_ON, Journal
from factory.control.resources import RESOURCE
from factory.errors import ClusterError, GateRefused, RunFailed
from factory.settings import Deployment
from tests.control.a_run import STEP, handle, tags_of
from tests.control.kube.submissions import launch


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def goes_on_after(
    instance: dg.DagsterInstance,
    error: BaseException | None,
    *,
    ended: str | None = "evicted",
    deployment: Deployment = "prod",
    cancelled: bool = False,
) -> str:
    """What the tag says of a run whose step has recorded that, and then left like this."""

    @dg.op(name=STEP)
    def train(context: dg.OpExecutionContext) -> None:
        journal = Journal(instance, context.run, STEP)
        with acting_on_the_end(context, deployment):
            journal.record(handle(context.run, ended=ended, reason="r"), "it has ended")
            if cancelled:
                instance.report_run_canceling(context.run)
            if error is not None:
                raise error

    @dg.job(executor_def=dg.in_process_executor)
    def job() -> None:
        train()

    with contextlib.suppress(DagsterExecutionInterruptedError):
        job.execute_in_process(instance=instance, raise_on_error=False)
    [run] = instance.get_runs()
    return tags_of(instance, run)[GOES_ON]


@pytest.mark.parametrize("error", [None, RunFailed("it lost its place too often")])
def test_an_end_that_is_told_is_acted_on(
    instance: dg.DagsterInstance, error: Exception | None
) -> None:
    assert goes_on_after(instance, error) == "false"
    assert left_alone(instance) == []


@pytest.mark.parametrize("error", [ClusterError("no answer"), OSError("stale handle")])
def test_a_process_that_breaks_leaves_the_end_to_another(
    instance: dg.DagsterInstance, error: Exception
) -> None:
    assert goes_on_after(instance, error) == "true"
    assert len(left_alone(instance)) == 1


@pytest.mark.parametrize(
    ("deployment", "cancelled", "goes_on"),
    [("prod", False, "true"), ("prod", True, "false"), ("laptop", False, "false")],
)
def test_an_interrupt_in_the_teardown_is_an_end_only_where_a_person_wants_it(
    instance: dg.DagsterInstance, deployment: Deployment, cancelled: bool, goes_on: str
) -> None:
    interrupt = DagsterExecutionInterruptedError()
    found = goes_on_after(instance, interrupt, deployment=deployment, cancelled=cancelled)
    assert found == goes_on


def test_an_attempt_without_an_end_is_never_said_to_be_over(instance: dg.DagsterInstance) -> None:
    assert goes_on_after(instance, RunFailed("no"), ended=None) == "true"


def test_a_run_has_its_owner_from_the_beginning_of_its_gate(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def gated(context: dg.OpExecutionContext) -> None:
        run = instance.get_run_by_id(context.run_id)
        assert run is not None
        found.append(run.tags.get(OWNER_TAG, ""))
        raise GateRefused("that was all")

    monkeypatch.setattr(training, "gated", gated)
    training.training_job("smoke", launch().spec).execute_in_process(
        instance=instance, raise_on_error=False, resources={RESOURCE: object()}
    )
    assert found == [owner_tags()[OWNER_TAG]]
