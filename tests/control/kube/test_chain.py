"""Runs that have followed one another, and the journal that they share."""

import time
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.instance.methods import event_methods

from factory.control.kube.chain import ADOPTS, adopts, chain, root_of
from factory.control.kube.handles import GOES_ON, Journal
from tests.control.a_run import STEP, a_run, handle, tags_of
from tests.control.kube.submissions import launch


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def ids(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    return [record.dagster_run.run_id for record in chain(instance, run.run_id)]


def test_a_chain_is_the_same_from_every_run_in_it(instance: dg.DagsterInstance) -> None:
    runs = [a_run(instance)]
    for _ in range(3):
        runs.append(a_run(instance, tags={ADOPTS: runs[-1].run_id}))
    runs.append(a_run(instance, again=runs[1]))
    runs.append(a_run(instance, tags={ADOPTS: runs[-1].run_id}))
    a_run(instance)
    for run in runs:
        assert ids(instance, run) == [one.run_id for one in runs]
        assert root_of(instance, run) == runs[0].run_id


def test_a_chain_that_ends_in_itself_or_in_nothing_is_no_trap(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance, tags={ADOPTS: "gone"})
    assert (ids(instance, run), root_of(instance, run)) == ([run.run_id], run.run_id)
    instance.add_run_tags(run.run_id, {ADOPTS: run.run_id})
    [found] = chain(instance, run.run_id)
    assert root_of(instance, found.dagster_run) == run.run_id


def test_what_is_executed_again_was_not_made_to_take_anything_up(
    instance: dg.DagsterInstance,
) -> None:
    run = a_run(instance)
    adopting = a_run(instance, tags={ADOPTS: run.run_id})
    again = a_run(instance, again=adopting)
    assert again.tags[ADOPTS] == run.run_id
    assert (adopts(adopting), adopts(again)) == (run.run_id, "")


def test_the_third_that_takes_a_run_up_knows_what_the_second_has_done(
    instance: dg.DagsterInstance,
) -> None:
    first = a_run(instance)
    Journal(instance, first, STEP).record(handle(first), "attempt 1 is submitted")
    second = a_run(instance, tags={ADOPTS: first.run_id})
    Journal(instance, second, STEP).take_up(handle(first))
    third = a_run(instance, tags={ADOPTS: second.run_id})
    journal = Journal(instance, third, STEP)
    journal.record(handle(third, ended="evicted", reason="a place"), "attempt 1 has ended")
    journal.record(handle(third, launch=launch(attempt=2)), "attempt 2 is submitted")
    fourth = a_run(instance, "STARTED", {ADOPTS: third.run_id})
    last = Journal(instance, fourth, STEP).last()
    assert last == handle(third, launch=launch(attempt=2))
    assert [one.verdict for one in Journal(instance, fourth, STEP).history()] == ["evicted"]


def test_clocks_that_are_set_back_change_no_order(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(instance, "STARTED")
    journal = Journal(instance, run, STEP)
    journal.record(handle(run), "attempt 1 is submitted")
    earlier = time.time() - 20
    monkeypatch.setattr(event_methods, "get_current_timestamp", lambda: earlier)
    say = dg.EventLogEntry(
        error_info=None,
        level="INFO",
        user_message="saved",
        run_id=run.run_id,
        timestamp=earlier,
        step_key=STEP,
        dagster_event=None,
    )
    instance.handle_new_event(say)
    journal.record(handle(run, ended="evicted", reason="a place"), "attempt 1 has ended")
    last = journal.last()
    assert last is not None
    assert last.ended == "evicted"
    assert [one.reason for one in journal.history()] == ["a place"]
    assert journal.shown(1) == {"saved": 1}


@pytest.mark.parametrize("ended", ["succeeded", "gone", "evicted", "lost"])
def test_an_end_is_open_until_it_is_acted_on(instance: dg.DagsterInstance, ended: str) -> None:
    run = a_run(instance)
    journal = Journal(instance, run, STEP)
    journal.record(handle(run, ended=ended, reason="r"), "attempt 1 has ended")
    assert tags_of(instance, run)[GOES_ON] == "true"
    adopting = a_run(instance, tags={ADOPTS: run.run_id})
    Journal(instance, adopting, STEP).settle()
    assert tags_of(instance, run)[GOES_ON] == "false"
    assert GOES_ON not in tags_of(instance, adopting)
