"""Both engines make the same versions, whatever happens to their workers meanwhile."""

import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from factory.data import Dataset, engines, layout, shards, table
from factory.data.phases import Workshop
from factory.data.shards import Shard
from factory.data.steps import steps
from factory.errors import BadFile, StepError, StepInterrupted
from factory.namespace import Version

STEPS = ("clean", "deduplicated", "split")
WORDS = "a text of more than five words, number"


@pytest.fixture
def many(letters: Dataset, deliver, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Letters in several files, each of which is a shard; some are duplicates, some are empty."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 1)
    for file in range(5):
        rows = [
            {"id": f"{file}-{n}", "text": f"{WORDS} {n % 30}" if n % 10 else ""} for n in range(40)
        ]
        deliver(rows, f"part-{file}.jsonl")
    return letters


def made(runner, dataset: Dataset, engine: str, **changes: Any) -> list[Version]:
    """The versions of the steps over shards, in a namespace of their own."""
    versions: list[Version] = []
    for step in steps(dataset):
        if step.name == "raw":
            runner.checked(step)
        elif step.name in STEPS:
            versions.append(runner.step(step, engine=engine, **changes).version)
            from factory.data.free_checks import run_checks

            run_checks(step, versions[-1], runner.namespace)
            runner.namespace.promote(versions[-1])
    return versions


def stated(version: Version) -> tuple[Any, ...]:
    manifest = version.manifest
    sizes = {name: entry.sha256 for name, entry in manifest.files.items()}
    return version.id, manifest.facts, manifest.rows, manifest.licenses, sizes


@pytest.mark.slow
def test_ray_makes_what_this_process_makes(runner, many):
    here = [stated(version) for version in made(runner, many, "local")]
    assert [len(files) for *_, files in here] == [12, 7, 18]
    for version in runner.namespace.versions(many.key / "clean"):
        assert version.manifest.facts["rejected"] == {"no text": 21}
    for name in STEPS:
        forget(runner, many, name)
    there = [stated(version) for version in made(runner, many, "ray")]
    assert there == here


MARKER = "CANARY-7f3a"


class Noisy:
    """Tells the text of its shard in every way that a library might, and fails as asked."""

    def __call__(self, shard, folder, tick):
        import logging
        import os
        import signal
        import subprocess
        import warnings

        text = f"{MARKER} {shard.names[0]}"
        sys.stdout.write(text)
        sys.stderr.write(text)
        os.write(1, f"{text}\n".encode())
        subprocess.run(["/bin/echo", text], check=True)
        logging.getLogger("noisy").error(text)
        warnings.warn(text, stacklevel=1)
        (folder / "out.txt").write_text(text)
        match shard.names[0]:
            case "bad file":
                raise BadFile(f"{MARKER}: not JSON")
            case "defect":
                raise ValueError(MARKER)
            case "full":
                raise OSError(28, "No space left on device", str(folder))
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
        tick(2)
        return {}


def hits(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and MARKER.encode() in p.read_bytes()]


@pytest.mark.slow
def test_nothing_of_a_row_reaches_ray_and_errors_come_back(tmp_path, capfd):
    from factory.data.engines import driver, ray

    said: list[str] = []
    with ray.opened(cpus=2) as engine:
        shop = Workshop(tmp_path, engine, said.append)

        def every(*names: str) -> None:
            parts = [Shard(number, (name,), 1) for number, name in enumerate(names)]
            shop.every(names[0], Noisy(), parts, what="rows read")

        every("fine", "also fine", "more")
        assert said[-1].startswith("6 rows read")
        assert capfd.readouterr().out.count(MARKER) >= 9
        with pytest.raises(BadFile, match=f"{MARKER}: not JSON") as caught:
            every("bad file")
        assert "Noisy" in caught.value.__notes__[0] or "__call__" in caught.value.__notes__[0]
        with pytest.raises(StepError, match=f"Shard 1: ValueError: {MARKER}"):
            every("well", "defect")
        with pytest.raises(OSError, match="No space left") as full:
            every("full")
        assert full.value.errno == 28
        with pytest.raises(StepInterrupted, match="goes on from there") as interrupted:
            every("killed")
        assert MARKER not in str(interrupted.value)
        directories = list(driver.TEMPORARY.glob(f"{driver.PREFIX}*"))
        own = [path for path in directories if (path / "session_latest").exists()]
        assert own
        assert [hit for path in own for hit in hits(path)] == []
    assert not any(path.exists() for path in own)
    assert hits(tmp_path), "what was written is in the work directory"


def test_an_engine_that_is_none():
    with pytest.raises(StepError, match="no engine 'spark'; write one of local, ray"):
        engines.opened("spark")


@pytest.mark.parametrize("limit", [1, 39, 40, 41, 95, 1_000])
def test_a_limit_is_the_first_rows_over_the_shards(runner, many, limit):
    (runner.settings.drops / "letters" / "letters.jsonl").unlink()
    raw, clean_step, *_ = steps(many)
    runner.checked(raw)
    version = runner.step(clean_step, limit=limit).version
    rows = [(file, n) for file in range(5) for n in range(40)][:limit]
    ids = table.column(version.path / layout.SAMPLES, "id")
    assert ids == [f"{file}-{n}" for file, n in rows if n % 10]
    assert version.manifest.facts["rows_read"] == len(rows)
    assert version.manifest.limit == limit


def test_errors_are_counted_over_all_shards(runner, many, deliver):
    (runner.settings.drops / "letters" / "letters.jsonl").unlink()
    for file in range(5):
        rows = [{"id": f"{n}", "text": 7 if n < 2 else "x"} for n in range(10)]
        deliver(rows, f"part-{file}.jsonl")
    runner.checked(steps(many)[0])
    share = dataclasses.replace(many, max_errors=0.19)
    with pytest.raises(StepError, match=r"raised on 10 of 50 rows, .* allows 19\.00%") as told:
        runner.step(steps(share)[1])
    assert [line.split(":")[0].strip() for line in str(told.value).splitlines()[1:]] == [
        *("part-0.jsonl#1", "part-0.jsonl#2", "part-1.jsonl#1", "part-1.jsonl#2", "part-2.jsonl#1")
    ]
    assert list(runner.settings.root.rglob(".work-*")) == [], "it would end so again"
    assert runner.step(steps(dataclasses.replace(many, max_errors=0.2))[1]).version
    with pytest.raises(StepError, match="raised on 10 of 50 rows, max_errors allows 9"):
        runner.step(steps(dataclasses.replace(many, max_errors=9))[1])
    with pytest.raises(StepError, match="raised on 1 of 1 rows, max_errors allows 0"):
        runner.step(steps(dataclasses.replace(many, max_errors=0))[1])


@pytest.mark.parametrize(("size", "files"), [(1, 2_000), (3_000, 2), (10**9, 2_000)])
def test_content_does_not_depend_on_how_shards_are_planned(runner, many, monkeypatch, size, files):
    contents = [version.manifest.content_id for version in made(runner, many, "local")]
    monkeypatch.setattr(shards, "SHARD_BYTES", size)
    monkeypatch.setattr(shards, "SHARD_FILES", files)
    for name in STEPS:
        forget(runner, many, name)
    assert [version.manifest.content_id for version in made(runner, many, "local")] == contents


def forget(runner, dataset: Dataset, name: str) -> None:
    import shutil

    link = runner.settings.root / dataset.key.path / name
    shutil.rmtree(link.with_name(f"{name}.versions"))
    link.unlink()


class Waits:
    """The second shard fails at once, the first takes long."""

    def __call__(self, shard, folder, tick):
        import time

        if shard.number:
            raise BadFile("at once")
        time.sleep(120)
        return {}


@pytest.mark.slow
def test_an_error_ends_the_other_workers_and_leaves_nothing(tmp_path):
    from factory.data.engines import driver, ray

    def fail() -> None:
        with ray.opened(cpus=2) as engine:
            shop = Workshop(tmp_path, engine, lambda _: None)
            shop.every("waits", Waits(), [Shard(0, ("a",), 1), Shard(1, ("b",), 1)], what="rows")

    before = set(driver.TEMPORARY.glob(f"{driver.PREFIX}*"))
    started = time.monotonic()
    with pytest.raises(BadFile, match="at once"):
        fail()
    assert time.monotonic() - started < 90
    assert set(driver.TEMPORARY.glob(f"{driver.PREFIX}*")) - before == set()
