"""Runs that are killed, preempted, replaced or refused. Whole ranks on real data, without Ray.

More kills, and through Ray: `tests/bench/bench_resume.py`.
"""

import os
import random
import signal
from collections.abc import Callable, Iterator

import pytest

from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import complete_checkpoints
from factory.observe.mixture.files import ledger_of
from factory.reports import StepLine, read_lines
from factory.spec import Launch
from factory.training.resume.chains import chain_of
from tests.training.conftest import Site
from tests.training.forks import Fork, Forks
from tests.training.kills import (
    LAYOUTS,
    OVERRIDES,
    STEPS,
    Layout,
    Point,
    Trace,
    killed_and_finished,
    left_alone,
    lines_of,
    trace,
)

pytestmark = pytest.mark.slow

ALONE, READERS, TOGETHER = LAYOUTS


@pytest.fixture(scope="module")
def forks(site: Site) -> Iterator[Forks]:
    server = Forks(site.settings)
    yield server
    server.close()


@pytest.fixture(scope="module")
def alone(site: Site, forks: Forks) -> Callable[[Layout], Trace]:
    """What a layout comes to when nobody touches it."""
    found: dict[Layout, Trace] = {}

    def of(layout: Layout) -> Trace:
        if layout not in found:
            name = f"alone-{layout.ranks}-{layout.loader_workers}"
            found[layout] = left_alone(forks.start, site.launch(name, **layout.spec), layout)
        return found[layout]

    return of


@pytest.mark.parametrize(
    ("layout", "points"),
    [
        (ALONE, ["driver"]),
        (ALONE, ["mid-save", "mid-save"]),
        (READERS, ["worker"]),
        (READERS, ["mid-save"]),
        (TOGETHER, ["worker", "driver"]),
        (TOGETHER, ["mid-save"]),
    ],
    ids=str,
)
def test_a_run_that_was_killed_ends_as_if_it_had_not_been(
    site, forks, alone, layout: Layout, points: list[Point]
) -> None:
    name = f"killed-{layout.ranks}-{layout.loader_workers}-{'-'.join(points)}"
    chance = random.Random(name)
    launch = site.launch(name, **layout.spec)
    found = killed_and_finished(forks.start, launch, layout, points, chance)
    assert found.kills, "it was quicker than the kill"
    assert found.trace == alone(layout)


def told_to_stop_at_once(forks: Forks, launch: Launch) -> Fork:
    """A driver that gets SIGTERM as soon as it has ranks: they save after their first step."""
    fork = forks.start(launch)
    assert fork.until(lambda: len(fork.ranks()) == launch.spec.ranks), fork.output
    os.kill(fork.driver, signal.SIGTERM)
    assert fork.wait() == 75, fork.output
    return fork


def test_a_run_whose_driver_is_told_to_stop_saves_and_goes_on_exactly(site, forks, alone) -> None:
    launch = site.launch("preempted", **TOGETHER.spec)
    first = told_to_stop_at_once(forks, launch)
    [saved] = complete_checkpoints(first.run)
    assert saved.step == max(lines_of(first.run.path)), "it stopped at the step that it saved"
    assert "Traceback" not in first.output
    second = forks.start(launch.model_copy(update={"attempt": 2}))
    assert second.wait() == 0, second.output
    assert trace(second.run, TOGETHER) == alone(TOGETHER)


def test_a_rank_that_is_told_to_stop_takes_the_others_along(site, forks, alone) -> None:
    launch = site.launch("preempted-rank", **TOGETHER.spec)
    first = forks.start(launch)
    assert first.until(lambda: bool(lines_of(first.run.path))), first.output
    os.kill(first.ranks()[1], signal.SIGTERM)
    assert first.wait() == 75, first.output
    second = forks.start(launch.model_copy(update={"attempt": 2}))
    assert second.wait() == 0, second.output
    assert trace(second.run, TOGETHER) == alone(TOGETHER)


def test_what_would_not_continue_exactly_is_refused_and_fresh_data_goes_round(
    site, forks, alone
) -> None:
    launch = site.launch("refused", **ALONE.spec)
    told_to_stop_at_once(forks, launch)
    changed = launch.model_copy(
        update={"spec": launch.spec.model_copy(update={"loader_workers": 2})}
    )
    refused = forks.start(changed.model_copy(update={"attempt": 2}))
    assert refused.wait() == 1
    assert "- loader workers of each rank: 0 then, 2 now" in refused.output
    assert "--fresh-data" in refused.output
    fresh = forks.start(changed.model_copy(update={"attempt": 3, "fresh_data": True}))
    assert fresh.wait() == 0, fresh.output
    lines = lines_of(fresh.run.path)
    assert sorted(lines) == list(range(1, STEPS + 1))
    assert lines[STEPS] != alone(ALONE).steps[STEPS], "its data began again"
    saved = complete_checkpoints(fresh.run)[-1]
    assert saved.marker.identity["loader workers of each rank"] == 2


def test_fresh_data_that_were_never_saved_leave_the_run_as_it_was(site, forks, alone) -> None:
    launch = site.launch("fresh-unsaved", **ALONE.spec)
    told_to_stop_at_once(forks, launch)
    overrides = {**OVERRIDES, "dataset.buffer": "9", "checkpoint.save_interval": "100000"}
    other = launch.spec.model_copy(update={"overrides": overrides})
    asked = {"spec": other, "attempt": 2, "fresh_data": True}
    fresh = forks.start(launch.model_copy(update=asked))
    assert fresh.until(lambda: any(line.begun == 2 for line in ledger_of(fresh.run.path)))
    os.kill(fresh.driver, signal.SIGKILL)
    fresh.wait()
    third = forks.start(launch.model_copy(update={"attempt": 3}))
    assert third.wait() == 0, third.output
    assert ledger_of(third.run.path) == alone(ALONE).ledger
    assert chain_of(third.run, 0) == alone(ALONE).chains[0]
    last = read_lines(third.run.path / "monitor" / "steps.jsonl", StepLine)[-1]
    assert (last.loss, last.grad_norm, last.tokens) == alone(ALONE).steps[STEPS]


def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(site, forks, alone) -> None:
    launch = site.launch("damaged", **ALONE.spec)
    first = forks.start(launch)
    assert first.until(lambda: len(complete_checkpoints(first.run)) >= 2), first.output
    os.kill(first.driver, signal.SIGKILL)
    first.wait()
    newest = complete_checkpoints(first.run)[-1]
    weights = next(newest.path.glob("*.distcp"))
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    second = forks.start(launch.model_copy(update={"attempt": 2}))
    assert second.wait() == 0, second.output
    assert f"step {newest.step} cannot be loaded: {weights.name} has other" in second.output
    assert trace(second.run, ALONE) == alone(ALONE)


def test_from_two_ranks_to_one_with_two_readers(site, forks, alone) -> None:
    launch = site.launch("moved", **Layout(2, 1).spec)
    told_to_stop_at_once(forks, launch)
    asked = launch.model_copy(update={"redistribute": True})
    one = launch.spec.model_copy(update={"workers": 1})
    refused = forks.start(asked.model_copy(update={"attempt": 2, "spec": one}))
    assert refused.wait() == 1
    assert "With 1 ranks, set loader_workers to 2" in refused.output
    two = one.model_copy(update={"loader_workers": 2})
    moved = forks.start(asked.model_copy(update={"attempt": 3, "spec": two}))
    assert moved.wait() == 0, moved.output
    lines, whole = lines_of(moved.run.path), alone(TOGETHER).steps
    assert sorted(lines) == sorted(whole)
    for step, (loss, norm, tokens) in lines.items():
        assert loss == pytest.approx(whole[step][0], rel=2e-5)
        assert norm == pytest.approx(whole[step][1], rel=1e-3)
        assert tokens == whole[step][2]


def test_a_run_that_was_taken_over_writes_nothing_more(site, forks) -> None:
    """As when a node is cut off from its cluster, and its run is started elsewhere."""
    overrides = {**ALONE.spec["overrides"], "train.train_iters": "100000"}
    launch = site.launch("replaced", overrides=overrides | {"checkpoint.save_interval": "100000"})
    first = forks.start(launch)
    assert first.until(lambda: bool(lines_of(first.run.path))), first.output
    again = forks.start(launch)
    assert again.wait() == 4
    assert f"process {first.driver} on" in again.output
    assert not forks.ended(first.driver)
    Attempt(first.run, 2).claim()
    assert first.wait() != 0
    assert "was replaced by attempt 2" in first.output
    assert complete_checkpoints(first.run) == []
