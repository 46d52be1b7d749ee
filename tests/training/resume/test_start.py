"""The checkpoint that an attempt goes on from: the newest whole one; what is refused."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from factory.errors import ResumeRefused, RunFailed, Superseded
from factory.namespace import Damage, Namespace
from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import (
    Checkpoint,
    Marker,
    checkpoint_path,
    complete,
    files_below,
    measured,
)
from factory.spec import RunSpec
from factory.training.resume.identity import (
    DATA_PARALLEL_SIZE,
    GLOBAL_BATCH_SIZE,
    LOADER_WORKERS,
    MICRO_BATCH_SIZE,
    refuse_other_data,
)
from factory.training.resume.once import Once
from factory.training.resume.redistribute import refuse_other_readers
from factory.training.resume.start import (
    Start,
    choose,
    data_state_name,
    nothing_left,
    shares,
    states_name,
    states_of,
)


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    attempt = Attempt(Namespace(tmp_path).open_run("public", "run-1"), 2)
    attempt.claim()
    return attempt


def saved(attempt: Attempt, step: int, *, finished: bool = True) -> Checkpoint | None:
    path = checkpoint_path(attempt.run, step)
    (path / "factory").mkdir(parents=True)
    (path / "__0_0.distcp").write_bytes(f"weights {step}".encode() * 100)
    (path / data_state_name(0)).write_bytes(b"loader")
    (path / states_name(0)).write_text(json.dumps({"chain": {"batches": step}}))
    if not finished:
        return None
    files = measured(path, files_below(path))
    identity = {"data-parallel size": 2, "mix": "a1b2", "seed": 7}
    return complete(path, Marker(step=step, attempt=1, identity=identity, files=files))


def chosen(attempt: Attempt) -> tuple[Checkpoint | None, list[tuple[str, str]]]:
    said: list[tuple[str, str]] = []
    found = choose(attempt, lambda one: one.damage(), lambda *words: said.append(words))
    return found, said


def test_the_newest_complete_one(attempt: Attempt) -> None:
    assert chosen(attempt) == (None, [])
    for step in (40, 120, 80):
        saved(attempt, step)
    saved(attempt, 160, finished=False)
    found, said = chosen(attempt)
    assert found is not None
    assert found.step == 120
    assert said == []
    assert not checkpoint_path(attempt.run, 160).exists(), "what was never completed is removed"


def test_a_damaged_newest_one_gives_way_to_the_one_before_loudly(attempt: Attempt) -> None:
    for step in (40, 80, 120):
        saved(attempt, step)
    for step in (80, 120):
        (checkpoint_path(attempt.run, step) / "__0_0.distcp").write_bytes(b"other")
    found, said = chosen(attempt)
    assert found is not None
    assert found.step == 40
    assert [name for name, _ in said] == ["damaged checkpoint"] * 2
    assert "step 120 cannot be loaded: __0_0.distcp has 5 bytes, not 1,100" in said[0][1]
    kept = attempt.run.path / "checkpoints" / "damaged"
    assert {path.name for path in kept.iterdir()} == {
        "iter_0000080.attempt-2",
        "iter_0000120.attempt-2",
    }


def test_one_with_a_damaged_marker_is_set_aside_loudly_and_not_removed(attempt: Attempt) -> None:
    for step in (40, 80):
        saved(attempt, step)
    marker = checkpoint_path(attempt.run, 80) / "complete.json"
    marker.write_bytes(marker.read_bytes()[:-20])
    copy = checkpoint_path(attempt.run, 40).with_name("iter_0000040.keep")
    copy.mkdir()
    found, said = chosen(attempt)
    assert found is not None
    assert found.step == 40
    assert "step 80 cannot be loaded: complete.json is cut off" in said[0][1]
    kept = attempt.run.path / "checkpoints" / "damaged" / "iter_0000080.attempt-2"
    assert (kept / "__0_0.distcp").is_file()
    assert copy.is_dir()


def test_with_all_of_them_damaged_the_run_begins_again(attempt: Attempt) -> None:
    saved(attempt, 40)
    (checkpoint_path(attempt.run, 40) / states_name(0)).unlink()
    found, said = chosen(attempt)
    assert found is None
    assert "states-dprank000.json cannot be read" in said[0][1]


def test_an_attempt_that_was_replaced_touches_nothing(attempt: Attempt) -> None:
    saved(attempt, 40, finished=False)
    Attempt(attempt.run, 3).claim()
    with pytest.raises(Superseded):
        chosen(attempt)
    assert checkpoint_path(attempt.run, 40).exists()


@pytest.mark.parametrize(("steps", "left"), [(40, False), (39, False), (41, True)])
def test_a_run_that_has_its_last_step_has_nothing_left_to_do(attempt, steps, left) -> None:
    spec = RunSpec(
        recipe="debug.pretrain", mix="smoke", overrides={"train.train_iters": str(steps)}
    )
    checkpoint = saved(attempt, 40)
    assert checkpoint is not None
    assert nothing_left(Start(checkpoint), spec) != left


def test_a_complete_checkpoint_is_never_saved_into_again(attempt) -> None:
    saved(attempt, 40)
    saved(attempt, 80)
    saves = Once(attempt.run, 40)
    assert saves.has(40)
    assert not saves.has(80)
    with pytest.raises(RunFailed, match="is complete already"):
        saves.begin(80)
    assert not saves.has(80)
    saves.begin(60)
    assert saves.has(60)


def test_the_ranks_share_the_reading(attempt: Attempt) -> None:
    names = [f"__{rank}_0.distcp" for rank in range(10)]
    split = shares(names, 4)
    assert sorted(name for share in split for name in share) == sorted(names)
    assert {len(share) for share in split} == {2, 3}
    assert shares(["one"], 3) == [["one"], [], []]


def test_equal_data_goes_on(attempt: Attempt) -> None:
    checkpoint = saved(attempt, 40)
    assert checkpoint is not None
    refuse_other_data(checkpoint, dict(checkpoint.marker.identity))
    assert states_of(checkpoint, 0) == {"chain": {"batches": 40}}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"mix": "ffff"}, "- mix: a1b2 then, ffff now"),
        ({"data-parallel size": 1}, "- data-parallel size: 2 then, 1 now"),
        ({"packing": "naive"}, "- packing: nothing then, naive now"),
        ({"seed": None}, "- seed: 7 then, nothing now"),
    ],
)
def test_every_field_that_differs_is_named_with_both_values(attempt, changed, says) -> None:
    checkpoint = saved(attempt, 40)
    assert checkpoint is not None
    with pytest.raises(ResumeRefused) as refused:
        refuse_other_data(checkpoint, {**checkpoint.marker.identity, **changed})
    assert says in str(refused.value)
    assert "--fresh-data" in str(refused.value)
    assert str(refused.value).count("\n- ") == 1


@pytest.mark.parametrize("name", [data_state_name(1), states_name(1)])
def test_a_rank_without_its_state_is_refused(attempt: Attempt, name: str) -> None:
    path = checkpoint_path(attempt.run, 40)
    (path / "factory").mkdir(parents=True)
    for present in {data_state_name(1), states_name(1)} - {name}:
        (path / present).write_text("{}")
    files = measured(path, files_below(path))
    checkpoint = complete(path, Marker(step=40, attempt=1, identity={}, files=files))
    with pytest.raises(ResumeRefused, match=f"holds no {name}"):
        states_of(checkpoint, 1)
    assert Damage(name, "is not in the checkpoint") in checkpoint.damage([name])


def readers(attempt: Attempt, ranks: int, workers: int, sequences: int = 8) -> Checkpoint:
    path = checkpoint_path(attempt.run, 40)
    path.mkdir(parents=True)
    marker = Marker(step=40, attempt=1, identity=layout(ranks, workers, sequences), files={})
    return complete(path, marker)


def layout(ranks: int, workers: int, sequences: int) -> dict[str, JsonValue]:
    return {
        DATA_PARALLEL_SIZE: ranks,
        LOADER_WORKERS: workers,
        MICRO_BATCH_SIZE: 1,
        GLOBAL_BATCH_SIZE: sequences,
    }


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ((2, 1), (1, 2), None),
        ((2, 2), (4, 1), None),
        ((2, 1), (1, 1), "With 1 ranks, set loader_workers to 2"),
        ((4, 1), (3, 1), "4 processes cannot be shared by 3 ranks: choose a divisor of 4"),
        ((2, 0), (1, 2), "0 loader workers a rank, now 2, and what a rank read"),
        ((1, 2), (2, 0), "2 loader workers a rank, now 0"),
    ],
)
def test_as_many_processes_read_after_a_redistribution(attempt, before, after, says) -> None:
    checkpoint = readers(attempt, *before)
    now = layout(*after, 8)
    if says is None:
        refuse_other_readers(checkpoint, now)
        return
    with pytest.raises(ResumeRefused) as refused:
        refuse_other_readers(checkpoint, now)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("before", "after", "sequences", "says"),
    [
        ((2, 2), (1, 4), 8, None),
        ((2, 2), (4, 1), 12, None),
        ((2, 2), (1, 4), 6, "6 sequences in batches of 1 is not shared equally by the 4"),
        ((2, 1), (1, 2), 3, "3 sequences in"),
        ((4, 1), (1, 4), 12, None),
        ((1, 4), (2, 2), 6, "6 sequences in"),
        ((4, 1), (2, 2), 4, None),
    ],
)
def test_a_step_that_readers_share_unequally_is_not_moved(
    attempt, before, after, sequences, says
) -> None:
    checkpoint = readers(attempt, *before, sequences)
    if says is None:
        refuse_other_readers(checkpoint, layout(*after, sequences))
        return
    with pytest.raises(ResumeRefused) as refused:
        refuse_other_readers(checkpoint, layout(*after, sequences))
    assert says in str(refused.value)
