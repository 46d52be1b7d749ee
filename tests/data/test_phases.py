"""Finished work is found again if all of it is there unchanged, and done again if not."""

import json
from pathlib import Path

import pytest

from factory.data.engines.local import Local
from factory.data.finished import MARKER, finish, found
from factory.data.phases import Workshop
from factory.data.progress import Meter
from factory.data.shards import Shard
from factory.errors import StepError

SHARDS = [Shard(number, (f"file-{number}",), 10) for number in range(4)]


class Copy:
    """Writes the name of the file of each shard, and remembers which it was asked for."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.done: list[int] = []
        self.stop_at = stop_at

    def __call__(self, shard, folder, tick):
        if shard.number == self.stop_at:
            raise KeyboardInterrupt
        self.done.append(shard.number)
        (folder / "out.txt").write_text(shard.names[0])
        tick(3)
        return {"name": shard.names[0]}


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path, Local(), lambda _: None)


def test_finished_shards_are_not_done_again(shop, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        shop.every("copied", Copy(stop_at=2), SHARDS, what="rows")
    said: list[str] = []
    task = Copy()
    done = Workshop(tmp_path, Local(), said.append).every("copied", task, SHARDS, what="rows")
    assert task.done == [2, 3]
    assert [one.facts["name"] for one in done] == [f"file-{n}" for n in range(4)]
    assert [one.file("out.txt").read_text() for one in done] == [f"file-{n}" for n in range(4)]
    assert said[0] == "2 of 4 shards are finished from before"
    assert said[-1].startswith("12 rows in ")
    assert said[-1].endswith("40 B of 40 B, 4 of 4 shards done")
    assert shop.every("copied", again := Copy(), SHARDS, what="rows")
    assert again.done == []


def damage_content(folder: Path) -> None:
    (folder / "out.txt").write_text("file-X")


def damage_size(folder: Path) -> None:
    (folder / "out.txt").write_text("")


def lose_file(folder: Path) -> None:
    (folder / "out.txt").unlink()


def lose_marker(folder: Path) -> None:
    (folder / MARKER).unlink()


def cut_marker(folder: Path) -> None:
    path = folder / MARKER
    path.write_bytes(path.read_bytes()[:-5])


def empty_marker(folder: Path) -> None:
    (folder / MARKER).write_text("{}")


def add_file(folder: Path) -> None:
    (folder / "more.txt").write_text("x")


def other_shard(folder: Path) -> None:
    path = folder / MARKER
    marker = json.loads(path.read_text())
    marker["shard"]["names"] = ["another"]
    path.write_text(json.dumps(marker))


@pytest.mark.parametrize(
    "damage",
    [
        *(damage_content, damage_size, lose_file, lose_marker),
        *(cut_marker, empty_marker, add_file, other_shard),
    ],
)
def test_a_damaged_shard_is_done_again(shop, damage):
    before = shop.every("copied", Copy(), SHARDS, what="rows")
    damage(before[1].folder)
    done = shop.every("copied", task := Copy(), SHARDS, what="rows")
    assert task.done == [1]
    assert [one.file("out.txt").read_text() for one in done] == [f"file-{n}" for n in range(4)]


def test_another_plan_is_other_work(shop):
    shop.every("copied", Copy(), SHARDS, what="rows")
    shop.every("copied", task := Copy(), [Shard(0, ("file-0",), 10, limit=2)], what="rows")
    assert task.done == [0]


def test_what_a_dead_process_began_is_swept(shop, tmp_path):
    draft = tmp_path / "copied" / ".00000-abc"
    draft.mkdir(parents=True)
    (draft / "out.txt").write_text("half")
    shop.every("copied", Copy(), SHARDS, what="rows")
    assert not draft.exists()


def test_a_reduce_is_done_once(shop):
    calls: list[int] = []

    def fill(folder: Path) -> dict[str, int]:
        calls.append(1)
        (folder / "sum.txt").write_text("6")
        return {"sum": 6}

    assert shop.once("summed", fill).facts == {"sum": 6}
    again = shop.once("summed", fill)
    assert calls == [1]
    (again.folder / "sum.txt").write_text("7")
    assert shop.once("summed", fill).file("sum.txt").read_text() == "6"
    assert calls == [1, 1]


def test_an_error_leaves_nothing_half_done(shop, tmp_path):
    def fail(shard, folder, tick):
        (folder / "out.txt").write_text("half")
        raise StepError("no")

    with pytest.raises(StepError, match="no"):
        shop.every("copied", fail, SHARDS, what="rows")
    assert list((tmp_path / "copied").iterdir()) == []


def test_of_twins_one_wins(tmp_path):
    """Two workers with one shard: the slower one finds the result of the other in its place."""
    folder, shard = tmp_path / "00000", SHARDS[0]

    def fill(draft: Path) -> dict[str, int]:
        (draft / "out.txt").write_text("same")
        return {"inode": draft.stat().st_ino}

    finish(folder, shard, fill)
    first = folder.stat().st_ino
    finish(folder, shard, fill)
    assert folder.stat().st_ino == first
    (folder / "out.txt").write_text("gone")
    finish(folder, shard, fill)
    assert folder.stat().st_ino != first
    assert found(folder, shard) is not None
    assert [path.name for path in tmp_path.iterdir()] == ["00000"]


def test_progress_says_how_much_is_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    said: list[str] = []
    meter = Meter(said.append, "rows read", 4, 400)
    meter._started = meter._last = 0.0
    meter.found(Shard(0, (), 100), 50)
    meter.rows(10)
    assert said == []
    now[0] = 10.0
    meter.rows(90)
    assert said == ["150 rows read in 10.0 s, 10/s, 100 B of 400 B, 1 of 4 shards done"]
    meter.done(Shard(1, (), 100))
    assert len(said) == 1, "one line every few seconds"
    now[0] = 20.0
    meter.counted(200)
    assert said[1] == (
        "250 rows read in 20.0 s, 10/s, 200 B of 400 B, 2 of 4 shards done, about 40 s left"
    )
