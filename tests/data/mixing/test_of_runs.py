"""Which lock an attempt goes on with, whatever earlier ones have read and saved."""

from pathlib import Path

import pytest

from factory.data.mixing import MixLock
from factory.data.mixing.of_runs import MIX_LOCK, goes_on_with, keep, lock_of, lock_path
from factory.namespace import Namespace, RunDirectory
from factory.namespace.checkpoints import Marker, checkpoint_path, complete
from tests.observe.mixture.made import lock_of as made

FIRST, OTHER = made(), made(basis="token")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return Namespace(tmp_path).open_run("public", "run-1")


def saved(run: RunDirectory, step: int, lock: MixLock | None) -> None:
    checkpoint_path(run, step).mkdir(parents=True)
    identity = {} if lock is None else {MIX_LOCK: lock.hash}
    complete(checkpoint_path(run, step), Marker(step=step, attempt=1, identity=identity, files={}))


def test_a_run_that_never_began_has_none(run: RunDirectory) -> None:
    assert goes_on_with(run) is None
    assert lock_of(run.path) is None
    assert lock_path(run.path).name == "mix.lock"


def test_it_is_written_only_where_it_changes(run: RunDirectory) -> None:
    for attempt, lock in enumerate((FIRST, FIRST, OTHER, OTHER, FIRST), start=1):
        assert keep(run, attempt, lock) == lock
        assert lock_of(run.path) == lock
    names = sorted(path.name for path in run.path.glob("mix*"))
    assert names == ["mix.3.lock", "mix.5.lock", "mix.lock"]


def test_the_tenth_attempt_is_after_the_ninth(run: RunDirectory) -> None:
    for attempt, lock in ((1, FIRST), (9, OTHER), (10, FIRST)):
        keep(run, attempt, lock)
    assert lock_path(run.path).name == "mix.10.lock"


def test_what_ended_before_it_saved_decides_nothing(run: RunDirectory) -> None:
    keep(run, 1, FIRST)
    saved(run, 10, FIRST)
    keep(run, 2, OTHER)
    assert goes_on_with(run) == FIRST
    keep(run, 3, FIRST)
    saved(run, 20, FIRST)
    assert goes_on_with(run) == FIRST
    saved(run, 30, OTHER)
    assert goes_on_with(run) == OTHER


def test_a_checkpoint_of_a_lock_that_is_gone_leaves_the_last_one(run: RunDirectory) -> None:
    keep(run, 1, FIRST)
    saved(run, 10, OTHER)
    assert goes_on_with(run) == FIRST, "its identity then refuses, with both hashes"
