"""What a run takes up, what it says of that, and who may not."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from factory.control.abandoned import OWNER_TAG
from factory.control.adoption import left_alone
from factory.control.kube.backend import KubernetesBackend
from factory.control.kube.chain import ADOPTS
from factory.control.kube.handles import GOES_ON, Journal
from factory.errors import RunFailed
from factory.namespace import Namespace
from factory.namespace.checkpoints import Marker, checkpoint_path, complete
from factory.settings import Settings
from factory.spec import Launch
from tests.control.a_cluster import a_cluster
from tests.control.a_run import STEP, a_run, fails, handle, tags_of
from tests.control.kube.submissions import launch
from tests.control.test_repair import dead

type Adopted = Callable[[dg.DagsterRun], Launch | None]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@pytest.fixture
def adopted(instance: dg.DagsterInstance, settings: Settings) -> Adopted:
    """What a run goes on with, when it asks."""

    def ask(run: dg.DagsterRun) -> Launch | None:
        backend = KubernetesBackend(settings, a_cluster(), instance, run, STEP)
        return backend.adopted(launch().spec)

    return ask


@pytest.fixture
def left(instance: dg.DagsterInstance) -> dg.DagsterRun:
    """A run whose process is gone."""
    run = a_run(instance)
    Journal(instance, run, STEP).record(handle(run), "attempt 1 is submitted")
    return run


def test_who_takes_a_run_up_says_so_at_once_and_can_be_killed(
    instance: dg.DagsterInstance, left: dg.DagsterRun, adopted: Adopted
) -> None:
    taken = left
    for _ in range(4):
        assert left_alone(instance) == [instance.get_run_by_id(taken.run_id)]
        taken = a_run(instance, "STARTED", {ADOPTS: taken.run_id})
        assert adopted(taken) == launch()
        assert adopted(taken) == launch(), "the step asks once more than the gate"
        assert tags_of(instance, taken)[GOES_ON] == "true"
        assert left_alone(instance) == []
        last = Journal(instance, taken, STEP).last()
        assert last == handle(left, run_id=taken.run_id)
        fails(instance, taken)


@pytest.mark.parametrize("asks_first", [0, 1])
def test_of_two_that_take_one_up_the_second_is_refused(
    instance: dg.DagsterInstance, left: dg.DagsterRun, adopted: Adopted, asks_first: int
) -> None:
    two = [a_run(instance, "STARTED", {ADOPTS: left.run_id}) for _ in range(2)]
    heard = dict[int, object]()
    for number in (asks_first, 1 - asks_first):
        try:
            heard[number] = adopted(two[number])
        except RunFailed as error:
            heard[number] = str(error)
    assert heard[0] == launch()
    assert str(heard[1]).startswith(f"Run {two[0].run_id} follows attempt 1 of run")
    fails(instance, two[1])
    assert left_alone(instance) == []


def test_a_run_that_its_own_process_follows_is_not_taken_up(
    instance: dg.DagsterInstance, adopted: Adopted
) -> None:
    run = a_run(instance, "STARTED")
    Journal(instance, run, STEP).record(handle(run), "attempt 1 is submitted")
    other = a_run(instance, "STARTED", {ADOPTS: run.run_id})
    with pytest.raises(RunFailed, match="follows attempt 1"):
        adopted(other)
    instance.add_run_tags(run.run_id, {OWNER_TAG: dead().model_dump_json()})
    assert adopted(other) == launch()


@pytest.mark.parametrize(
    ("ended", "attempt"), [("succeeded", 1), ("gone", 1), ("evicted", 2), ("lost", 2)]
)
def test_an_end_that_nobody_acted_on_is_acted_on_by_another(
    instance: dg.DagsterInstance,
    left: dg.DagsterRun,
    adopted: Adopted,
    ended: str,
    attempt: int,
) -> None:
    Journal(instance, left, STEP).record(handle(left, ended=ended, reason="r"), "it has ended")
    assert [run.run_id for run in left_alone(instance)] == [left.run_id]
    other = a_run(instance, "STARTED", {ADOPTS: left.run_id})
    assert adopted(other) == launch(attempt=attempt)
    assert left_alone(instance) == []


@pytest.mark.parametrize("ended", ["failed", "cancelled"])
def test_a_run_that_has_failed_is_not_begun_again_by_its_next_process(
    instance: dg.DagsterInstance, adopted: Adopted, ended: str
) -> None:
    """Killed before Dagster had heard of the end, it is started again for the same run."""
    run = a_run(instance, "STARTED")
    Journal(instance, run, STEP).record(handle(run, ended=ended, reason="its driver"), "ended")
    with pytest.raises(RunFailed, match="Attempt 1 has ended already: its driver"):
        adopted(run)
    assert adopted(a_run(instance, "STARTED", again=run)) is None


@pytest.mark.parametrize("saves", [True, False])
def test_what_was_asked_for_once_is_not_done_again_after_it_was_saved(
    instance: dg.DagsterInstance, settings: Settings, adopted: Adopted, saves: bool
) -> None:
    run = a_run(instance)
    asked = launch(attempt=2, fresh_data=True, redistribute=True)
    ended = handle(run, launch=asked, ended="evicted", reason="r")
    Journal(instance, run, STEP).record(ended, "it has ended")
    if saves:
        directory = Namespace(settings.root).open_run(asked.classification, asked.run_id)
        checkpoint_path(directory, 7).mkdir(parents=True)
        complete(checkpoint_path(directory, 7), Marker(step=7, attempt=2, identity={}, files={}))
    other = a_run(instance, "STARTED", {ADOPTS: run.run_id})
    following = adopted(other)
    assert following is not None
    assert following.attempt == 3
    assert (following.fresh_data, following.redistribute) == (not saves, not saves)


@pytest.mark.parametrize("ended", ["succeeded", "gone", "failed", "cancelled"])
def test_an_end_that_is_told_is_not_told_again(
    instance: dg.DagsterInstance, left: dg.DagsterRun, adopted: Adopted, ended: str
) -> None:
    journal = Journal(instance, left, STEP)
    journal.record(handle(left, ended=ended, reason="r"), "it has ended")
    journal.settle()
    assert left_alone(instance) == []
    assert adopted(a_run(instance, "STARTED", again=left)) is None


def test_a_copied_tag_makes_no_run_go_on(instance: dg.DagsterInstance, left: dg.DagsterRun) -> None:
    again = a_run(instance, again=instance.get_run_by_id(left.run_id))
    assert again.tags[GOES_ON] == "true"
    assert [run.run_id for run in left_alone(instance)] == [left.run_id]


@pytest.fixture
def spent(instance: dg.DagsterInstance, settings: Settings) -> Callable[[dg.DagsterRun], float]:
    """Hours on the clock of a run that goes on with what others have begun."""

    def ask(run: dg.DagsterRun) -> float:
        backend = KubernetesBackend(settings, a_cluster(), instance, run, STEP)
        return round(backend.spent().get("run", 0.0) / 3600, 2)

    return ask


def hours_ago(hours: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat()


def test_the_time_of_every_attempt_is_on_the_clock_of_who_takes_a_run_up(
    instance: dg.DagsterInstance, spent: Callable[[dg.DagsterRun], float]
) -> None:
    run = a_run(instance)
    journal = Journal(instance, run, STEP)
    assert spent(run) == 0
    first = handle(run, driver_started=hours_ago(20))
    journal.record(first, "it runs")
    assert spent(run) == 20
    journal.record(first.model_copy(update={"ended": "evicted", "reason": "r"}), "it has ended")
    assert spent(run) == 20
    other = a_run(instance, "STARTED", {ADOPTS: run.run_id})
    second = handle(run, launch=launch(attempt=2), submitted_at=time.time())
    Journal(instance, other, STEP).record(second, "attempt 2 is submitted")
    assert spent(other) == 20
    runs = second.model_copy(update={"driver_started": hours_ago(3)})
    Journal(instance, other, STEP).record(runs, "it runs")
    assert spent(other) == 23


def test_who_executes_a_run_again_that_has_failed_has_the_whole_time(
    instance: dg.DagsterInstance, spent: Callable[[dg.DagsterRun], float]
) -> None:
    run = a_run(instance)
    journal = Journal(instance, run, STEP)
    before = {"driver_started": hours_ago(20), "reason": "r"}
    journal.record(handle(run, ended="evicted", **before), "it has ended")
    second = handle(run, launch=launch(attempt=2), ended="failed", **before)
    journal.record(second, "it has ended")
    assert spent(a_run(instance, "STARTED", again=run)) == 0
