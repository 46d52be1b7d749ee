"""Shards that are the same bytes each time, and that the real Energon reads back."""

import dataclasses
import hashlib
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data import Loss, Sample, energon, free_checks, layout, table
from factory.data.progress import silent
from factory.errors import StepError
from tests.shards import in_order, write_shards


def document(sample_id: str) -> Sample:
    return Sample.document(
        id=sample_id, title="Ünï", sections=[("A", "text"), ("", "more")], meta={"doi": "10.1/x"}
    )


def question(sample_id: str) -> Sample:
    return Sample.question(id=sample_id, question="Why?", answer="So.", options=["a", "b"])


def written(folder: Path, samples: list[Sample], per_shard: int = 4) -> dict[str, str]:
    folder.mkdir()
    write_shards(folder, in_order(samples), per_shard)
    names = sorted(path.name for path in folder.iterdir())
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def test_shards_do_not_depend_on_the_order_of_samples(tmp_path):
    samples = [document(f"d/{n}.xml") for n in range(9)]
    first = written(tmp_path / "a", samples)
    assert first == written(tmp_path / "b", samples[::-1])
    assert list(first) == ["shard-000000.tar", "shard-000001.tar", "shard-000002.tar"]
    with tarfile.open(tmp_path / "a" / "shard-000000.tar") as tar:
        entries = tar.getmembers()
    assert {(one.mtime, one.uid, one.gid, one.mode) for one in entries} == {(0, 0, 0, 0o644)}


def test_an_id_becomes_a_name_without_dots_or_folders():
    assert energon.entry_name("a/b.xml#3") == "a%2Fb%2Exml%233"
    assert energon.entry_name("é") == "%C3%A9"
    long = energon.entry_name("x" * 500)
    assert len(long) == energon.MAX_NAME_CHARACTERS
    assert long != energon.entry_name("x" * 501)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), unique=True, max_size=20))
def test_different_ids_have_different_names(ids):
    names = [energon.entry_name(one) for one in ids]
    assert len(set(names)) == len(names)
    assert all("." not in name and "/" not in name for name in names)


def test_two_samples_with_one_id_are_refused(tmp_path):
    with pytest.raises(StepError, match="Two samples have the id of entry same"):
        written(tmp_path / "a", [document("same"), question("same")])


def test_content_id_follows_content_shards_and_loss(tmp_path):
    samples = [document("a"), document("b")]

    def made(samples: list[Sample], per_shard: int = 10, policy: Loss = Loss()) -> str:  # noqa: B008
        return energon.content_id(write_shards(tmp_path, samples, per_shard), per_shard, policy)

    first = made(samples)
    assert first == made(list(samples))
    assert first != made(samples[::-1])
    assert first != made(samples, 1)
    assert first != made([document("a"), question("b")])
    assert first != made(samples, policy=Loss(document=["sections"]))


@pytest.fixture
def mixed(letters, deliver, runner):
    """Documents and questions with ids that need escaping."""
    deliver([{"id": f"d/{n}.xml#{n}", "text": f"text {n} äöü\n\n{'x' * n}"} for n in range(60)])
    return dataclasses.replace(letters, clean=_clean)


def _clean(row):
    if row.position % 2:
        return Sample.question(id=row.text("id"), question="Q?", answer=row.text("text"))
    return Sample.document(id=row.text("id"), title="T", sections=[("S", row.text("text"))])


@pytest.mark.slow
def test_the_real_loader_reads_back_what_was_split(runner, mixed):
    divided, _ = runner.until(mixed, "split")
    for name in ("train", "validation"):
        version, records = runner.until(mixed, f"energon/{name}")
        assert all(record.passed for record in records.values()), records
        expected = {
            one.id: one.as_dict() for one in table.samples(divided.path / layout.split_table(name))
        }
        for part in energon.PARTS:
            assert _loaded(version.path, part) == expected
    version, _ = runner.until(mixed, "energon/train")
    assert runner.namespace.verify(version) == [], "reading has changed nothing"


@pytest.mark.slow
def test_preparing_twice_gives_one_version_and_damage_is_seen(runner, mixed, tmp_path):
    version, _ = runner.until(mixed, "energon/test")
    divided = runner.namespace.current(mixed.key / "split").path
    samples = in_order(list(table.samples(divided / layout.split_table("test"))))
    shards = written(tmp_path / "again", samples, per_shard=1_000)
    energon.prepare(tmp_path / "again", len(shards), silent)
    files = version.manifest.files
    assert {name: files[name].sha256 for name in shards} == shards
    uuid = (tmp_path / "again" / energon.META / "index.uuid").read_text()
    assert uuid != (version.path / energon.META / "index.uuid").read_text()
    shorter = samples[1:]
    (shard,) = shards
    (tmp_path / "again" / shard).unlink()
    write_shards(tmp_path / "again", shorter)
    problems = energon.index_problems(tmp_path / "again")
    assert len(problems) == 2, problems
    (version.path / energon.META / "index.sqlite").unlink()
    assert not free_checks.run_one(_check(runner, mixed, "index_opens"), version.path).passed


def _check(runner, dataset, name):
    from factory.data.steps import steps

    (step, *_) = [step for step in steps(dataset) if step.kind == "energon"]
    return next(one for one in step.checks if one.name == name)


def _loaded(path: Path, part: str) -> dict[str, dict]:
    """Every sample of a dataset, through Energon's own loader."""
    import json
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from megatron.energon import (
            Cooker,
            DefaultTaskEncoder,
            TextSample,
            WorkerConfig,
            basic_sample_keys,
            get_loader,
            get_val_dataset,
        )
        from megatron.energon.errors import reraise_exception
        from megatron.energon.task_encoder.base import stateless

        @stateless
        def cook(raw: dict) -> TextSample:
            return TextSample(**basic_sample_keys(raw), text=json.dumps(raw["json"]))

        class Encoder(DefaultTaskEncoder):
            cookers = (Cooker(cook),)

        config = WorkerConfig(
            rank=0, world_size=1, num_workers=0, global_error_handler=reraise_exception
        )
        dataset = get_val_dataset(
            path, split_part=part, worker_config=config, batch_size=1, task_encoder=Encoder()
        )
        samples = [json.loads(text) for batch in get_loader(dataset) for text in batch.text]
    assert len(samples) == len({one["id"] for one in samples})
    return {one["id"]: one for one in samples}
