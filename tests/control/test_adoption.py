"""Which runs go on without a process, and what takes them up."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import dagster as dg
import pytest

from factory.control import adoption, fates
from factory.control.adoption import TRIES, adoption_sensor, left_alone, whose_chain_has
from factory.control.fates import begun, judge
from factory.control.jobs import declared_jobs
from factory.control.kube.chain import ADOPTS, root_of
from factory.control.kube.handles import GOES_ON, Journal
from factory.control.kube.orphans import GRACE
from tests.control.a_run import STEP, a_run, fails, handle
from tests.control.kube.submissions import launch


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@pytest.mark.parametrize(
    ("status", "goes_on", "alone"),
    [
        ("FAILURE", "true", True),
        ("FAILURE", "false", False),
        ("FAILURE", None, False),
        ("CANCELED", "true", False),  # a person wanted its end: what is left is an orphan
        ("SUCCESS", "true", False),
        ("STARTED", "true", False),  # its process may be started again for the same run
    ],
)
def test_a_run_is_alone_if_it_failed_and_goes_on(
    instance: dg.DagsterInstance, status: str, goes_on: str | None, alone: bool
) -> None:
    run = a_run(instance, status, {GOES_ON: goes_on} if goes_on else {})
    assert [one.run_id for one in left_alone(instance)] == ([run.run_id] if alone else [])


def test_it_is_not_alone_while_another_takes_it_up(instance: dg.DagsterInstance) -> None:
    run = a_run(instance, tags={GOES_ON: "true"})
    a_run(instance, "STARTING", {ADOPTS: run.run_id})
    assert left_alone(instance) == []


def test_of_a_chain_the_last_one_is_alone(instance: dg.DagsterInstance) -> None:
    run = a_run(instance, tags={GOES_ON: "true"})
    second = a_run(instance, tags={ADOPTS: run.run_id, GOES_ON: "true"})
    assert [one.run_id for one in left_alone(instance)] == [second.run_id]
    assert root_of(instance, second) == run.run_id


def test_one_that_failed_before_it_had_taken_anything_up_changes_nothing(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance, tags={GOES_ON: "true"})
    a_run(instance, "FAILURE", {ADOPTS: run.run_id})
    assert [one.run_id for one in left_alone(instance)] == [run.run_id]


def test_the_sensor_asks_for_the_same_job_with_the_same_configuration(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance, tags={GOES_ON: "true"})
    [request] = asked(instance)
    assert isinstance(request, dg.RunRequest)
    assert (request.job_name, request.run_config) == ("smoke", {"seed": 7})
    assert request.tags[ADOPTS] == run.run_id


def asked(instance: dg.DagsterInstance) -> list[dg.RunRequest | dg.SkipReason]:
    """What the sensor asks for now."""
    context = dg.build_sensor_context(instance=instance)
    return list(adoption_sensor(declared_jobs())(context))  # type: ignore[call-overload]


def test_the_sensor_asks_for_each_adoption_with_a_key_of_its_own(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance, tags={GOES_ON: "true"})
    [first] = asked(instance)
    [same] = asked(instance)
    a_run(instance, "FAILURE", {ADOPTS: run.run_id})  # it was killed before it took anything up
    [second] = asked(instance)
    assert isinstance(first, dg.RunRequest)
    assert isinstance(same, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert first.tags == second.tags
    assert first.run_key == same.run_key != second.run_key


def test_what_fails_at_once_is_tried_later_and_later_within_the_sweepers_grace_and_then_not(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run(instance, tags={GOES_ON: "true"})
    now = time.time
    waited: list[int] = []
    while isinstance(asked(instance)[0], dg.RunRequest):
        [alone] = left_alone(instance)
        fails(instance, a_run(instance, "STARTED", {ADOPTS: alone.run_id, GOES_ON: "true"}))
        for seconds in range(0, int(GRACE.total_seconds()), 30):
            later = timedelta(seconds=seconds + 1).total_seconds()
            monkeypatch.setattr(adoption, "time", _Clock(now, later))
            if isinstance(asked(instance)[0], dg.RunRequest):
                waited.append(seconds)
                break
    assert waited == [0, 60, 180, 420]
    [reason] = asked(instance)
    assert isinstance(reason, dg.SkipReason)
    assert f"{TRIES} that took it up have failed at once" in str(reason.skip_message)
    assert len(left_alone(instance)) == 1, "a person may still take it up"


class _Clock:
    def __init__(self, now: Callable[[], float], later: float) -> None:
        self.time = lambda: now() + later


def test_whoever_names_a_run_of_a_chain_means_the_one_that_is_alone(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance, tags={GOES_ON: "true"})
    second = a_run(instance, tags={ADOPTS: run.run_id, GOES_ON: "true"})
    alone = left_alone(instance)
    for named in (run, second):
        assert whose_chain_has(instance, alone, named.run_id) == second
    assert whose_chain_has(instance, alone, "another") is None


def test_the_journal_knows_the_attempts_of_every_run_of_a_chain(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance)
    first = Journal(instance, run, STEP)
    first.record(handle(run), "attempt 1 is submitted")
    assert [one.run_id for one in left_alone(instance)] == [run.run_id]
    second_run = a_run(instance, "STARTED", {ADOPTS: run.run_id})
    second = Journal(instance, second_run, STEP)
    assert second.last() == handle(run)
    second.record(handle(second_run, ended="lost", reason="its head was lost"), "it has ended")
    again = launch(attempt=2)
    second.record(handle(second_run, launch=again), "attempt 2 is submitted")
    for journal in (first, second):
        assert [one.reason for one in journal.history()] == ["its head was lost"]
        last = journal.last()
        assert last is not None
        assert last.launch.attempt == 2


def test_an_end_on_record_ends_it_for_every_run_of_the_chain(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance)
    Journal(instance, run, STEP).record(handle(run), "attempt 1 is submitted")
    second_run = a_run(instance, "FAILURE", {ADOPTS: run.run_id})
    second = Journal(instance, second_run, STEP)
    second.record(handle(second_run, ended="failed", reason="no"), "it has ended")
    assert left_alone(instance) == []


def say(instance: dg.DagsterInstance, run: dg.DagsterRun, line: str, step: str = STEP) -> None:
    """As `context.log` does in that step."""
    instance.handle_new_event(
        dg.EventLogEntry(
            error_info=None,
            level="INFO",
            user_message=line,
            run_id=run.run_id,
            timestamp=time.time(),
            step_key=step,
            dagster_event=None,
        )
    )


def test_what_the_page_has_of_an_attempt_is_what_was_said_since_it_is_on_record(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factory.control.kube.handles._PAGE", 2)
    run = a_run(instance)
    first = Journal(instance, run, STEP)
    assert first.shown(1) == {}
    say(instance, run, "saved")
    first.record(handle(run), "attempt 1 is submitted")
    for _ in range(3):
        say(instance, run, "saved")
    say(instance, run, "saved", step="another")
    second_run = a_run(instance, "STARTED", {ADOPTS: run.run_id})
    second = Journal(instance, second_run, STEP)
    say(instance, second_run, "ended")
    second.record(handle(second_run, launch=launch(attempt=2)), "attempt 2 is submitted")
    say(instance, second_run, "begun")
    for journal in (first, second):
        assert journal.shown(1) == {"saved": 3, "ended": 1, "begun": 1}
        assert journal.shown(2) == {"begun": 1}
        assert journal.shown(3) == {}


def recorded(
    instance: dg.DagsterInstance, name: str, status: str = "FAILURE", ended: str | None = None
) -> None:
    """A run whose attempt was submitted under that name, and has ended if it has."""
    run = a_run(instance, status)
    journal = Journal(instance, run, STEP)
    journal.record(handle(run, name=name), "attempt 1 is submitted")
    if ended is not None:
        journal.record(handle(run, name=name, ended=ended), "it has ended")


def test_what_has_begun_can_be_swept_once_its_run_is_over(instance: dg.DagsterInstance) -> None:
    recorded(instance, "run-a", "CANCELED")
    recorded(instance, "run-b", ended="failed")  # killed before all of it was gone
    recorded(instance, "run-c", "STARTED")
    recorded(instance, "run-d", "CANCELING", ended="cancelled")
    cluster = launch().spec.cluster
    assert begun(instance, cluster) == {"run-a", "run-b"}
    assert begun(instance, "another") == set()
    assert judge(instance).begun(cluster) == {"run-a", "run-b"}


def test_a_run_whose_end_is_told_is_looked_at_for_a_day_and_one_whose_end_is_not_for_ever(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(instance, "untold")
    recorded(instance, "told", ended="failed")
    cluster = launch().spec.cluster
    assert begun(instance, cluster) == {"untold", "told"}
    with monkeypatch.context() as later:
        later.setattr(fates, "SETTLED_FOR", timedelta(0))
        assert begun(instance, cluster) == {"untold"}
    recorded(instance, "newer", ended="cancelled")
    monkeypatch.setattr(fates, "MOST_SETTLED", 1)
    assert begun(instance, cluster) == {"untold", "newer"}
