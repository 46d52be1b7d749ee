"""Checkpoints: complete or absent, and every damage is found."""

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from factory.errors import NamespaceError
from factory.namespace import Namespace, RunDirectory
from factory.namespace.checkpoints import (
    CHECKPOINTS,
    MARKER,
    Checkpoint,
    Marker,
    checkpoint_path,
    complete,
    complete_checkpoints,
    damaged_markers,
    files_below,
    incomplete_checkpoints,
    measured,
    remove,
    set_aside,
)
from tests.forking import forked
from tests.namespace.planted import ends_soon


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return Namespace(tmp_path).open_run("public", "run-1")


def begin(run: RunDirectory, step: int) -> Path:
    """What a trainer leaves before anybody has completed it."""
    path = checkpoint_path(run, step)
    (path / "factory").mkdir(parents=True)
    for name in (".metadata", "__0_0.distcp", "__1_0.distcp", "factory/states-dprank000.json"):
        (path / name).write_bytes(f"{name} of {step}".encode() * 50)
    return path


def finish(path: Path, step: int, attempt: int = 1) -> Checkpoint:
    files = measured(path, files_below(path))
    return complete(path, Marker(step=step, attempt=attempt, identity={"seed": 1}, files=files))


@pytest.mark.parametrize("link", ["checkpoints/iter_0000040", "checkpoints"])
def test_a_public_run_goes_on_from_no_private_checkpoint(run: RunDirectory, link: str) -> None:
    private = Namespace(run.root).open_run("private", "run-2")
    finish(begin(private, 40), 40)
    (run.path / link).parent.mkdir(exist_ok=True)
    (run.path / link).symlink_to(private.path / link)
    with pytest.raises(NamespaceError, match=f"{link} is a link, or not of the kind"):
        complete_checkpoints(run)


def test_without_its_marker_it_does_not_exist(run: RunDirectory) -> None:
    assert complete_checkpoints(run) == []
    path = begin(run, 40)
    assert complete_checkpoints(run) == []
    assert incomplete_checkpoints(run) == [path]
    finish(path, 40)
    finish(begin(run, 120), 120)
    finish(begin(run, 80), 80)
    assert [one.step for one in complete_checkpoints(run)] == [40, 80, 120]
    assert incomplete_checkpoints(run) == []
    assert ".metadata" in complete_checkpoints(run)[0].marker.files
    assert MARKER not in complete_checkpoints(run)[0].marker.files


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_a_marker_that_is_cut_completes_nothing(run: RunDirectory, cut: int) -> None:
    path = begin(run, 40)
    finish(path, 40)
    (path / MARKER).write_bytes((path / MARKER).read_bytes()[:cut])
    assert complete_checkpoints(run) == []
    assert incomplete_checkpoints(run) == [], "it was complete once, so nobody may remove it"
    assert [(one, found.path) for one, found in damaged_markers(run).items()] == [(path, MARKER)]


def test_a_marker_of_another_step_completes_nothing(run: RunDirectory) -> None:
    path = finish(begin(run, 40), 40).path
    path.replace(checkpoint_path(run, 80))
    assert complete_checkpoints(run) == incomplete_checkpoints(run) == []
    assert list(damaged_markers(run)) == [checkpoint_path(run, 80)]


def test_what_somebody_put_beside_them_is_none_of_them(run: RunDirectory) -> None:
    path = begin(run, 40)
    path.rename(path.with_name("iter_0000040.keep"))
    path.with_name("iter_0000080").write_text("a file")
    assert complete_checkpoints(run) == incomplete_checkpoints(run) == []
    assert damaged_markers(run) == {}


def test_a_marker_that_cannot_be_read_is_not_taken_for_missing(run: RunDirectory) -> None:
    path = begin(run, 40)
    for make in (lambda: (path / MARKER).symlink_to(".metadata"), lambda: os.mkfifo(path / MARKER)):
        make()
        for find in (complete_checkpoints, incomplete_checkpoints, damaged_markers):
            with ends_soon(), pytest.raises(NamespaceError, match=f"{MARKER} is a link, or not of"):
                find(run)
        (path / MARKER).unlink()


def test_it_is_completed_once(run: RunDirectory) -> None:
    path = begin(run, 40)
    finish(path, 40)
    with pytest.raises(FileExistsError):
        finish(path, 40, attempt=2)
    assert complete_checkpoints(run)[0].marker.attempt == 1
    assert complete_checkpoints(run)[0].damage() == []


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (flip, "has other content than when it was completed"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes, not"),
        (Path.unlink, "cannot be read (No such file or directory)"),
    ],
)
def test_damage_is_found_in_any_file(run: RunDirectory, damage, says: str) -> None:
    names = sorted(finish(begin(run, 40), 40).marker.files)
    for step, name in enumerate(names, start=100):
        checkpoint = finish(begin(run, step), step)
        damage(checkpoint.path / name)
        [found] = checkpoint.damage()
        assert found.path == name
        assert says in found.problem
        assert checkpoint.damage([other for other in names if other != name]) == []


def test_one_that_is_set_aside_is_kept_and_counts_no_more(run: RunDirectory) -> None:
    path = finish(begin(run, 40), 40).path
    kept = set_aside(run, path, 2)
    assert kept == run.path / CHECKPOINTS / "damaged" / "iter_0000040.attempt-2"
    assert (kept / MARKER).is_file()
    assert complete_checkpoints(run) == []
    assert incomplete_checkpoints(run) == []


def test_a_removal_leaves_no_half_checkpoint_and_clears_up_after_one_that_was_cut_short(run):
    path = finish(begin(run, 40), 40).path
    left = path.parent / "removed" / "iter_0000020-0"
    left.mkdir(parents=True)
    (left / "__0_0.distcp").write_bytes(b"left")
    remove(path)
    assert complete_checkpoints(run) == incomplete_checkpoints(run) == []
    assert list(path.parent.iterdir()) == []


def test_one_that_somebody_still_writes_into_can_be_removed(run: RunDirectory) -> None:
    path = begin(run, 40)
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            with contextlib.suppress(FileNotFoundError):
                (path / f"__{number}_0.distcp").write_bytes(b"late")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        time.sleep(0.05)
        remove(path)
        assert not path.exists()
    finally:
        done.set()
        writer.join()


def test_a_kill_at_any_moment_of_completing_leaves_it_complete_or_absent(run) -> None:
    began = time.monotonic()
    os.waitpid(forked(lambda: finish(begin(run, 1000), 1000)), 0)
    takes = time.monotonic() - began
    chance = random.Random(5)
    states: set[bool] = set()
    for step in range(1, 41):
        path = begin(run, step)
        child = forked(lambda: finish(path, step))  # noqa: B023
        time.sleep(chance.uniform(0, 2 * takes))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = [one for one in complete_checkpoints(run) if one.step == step]
        states.add(bool(found))
        for checkpoint in found:
            assert checkpoint.damage() == []
        assert (path in incomplete_checkpoints(run)) != bool(found)
    assert states == {True, False}
