"""However samples are scattered to buckets, the shards of the output are the same bytes."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data import Loss, Sample, buckets, energon, table
from factory.data.buckets import Buckets, Files, held
from factory.data.energon import Stored
from factory.data.engines.local import Local
from factory.data.phases import Workshop
from factory.data.preparing import ScatterShard, WriteBucket, _bucket, _read_plan
from factory.data.shards import one_each
from factory.errors import StepError
from tests.shards import in_order, write_shards


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=200, unique=True),
    st.integers(1, 20),
    st.integers(0, 4_000),
)
def test_every_place_is_in_the_bucket_of_its_shard(numbers, per_shard, size):
    places = sorted(energon.place(str(number)) for number in numbers)
    before = buckets.BUCKET_BYTES
    buckets.BUCKET_BYTES = 100
    try:
        plan = Buckets.plan(places, per_shard, size)
    finally:
        buckets.BUCKET_BYTES = before
    assert plan.shards == -(-len(places) // per_shard)
    found = [
        number for bucket in range(len(plan.first_shards)) for number in plan.shards_of(bucket)
    ]
    assert found == list(range(plan.shards)), "every shard is in one bucket"
    for rank, place in enumerate(places):
        assert rank // per_shard in plan.shards_of(plan.of(place))


def samples(count: int) -> list[Sample]:
    return [
        Sample.document(id=f"d/{n}", title="T", sections=[("", f"text {n} äöü\n漢" * (n % 5 + 1))])
        for n in range(count)
    ]


def scattered(folder: Path, given: list[Sample], parts: int, per_shard: int) -> dict[str, str]:
    """The shards that come out of a split whose table has so many files."""
    from types import SimpleNamespace

    from factory.data.preparing import PLAN, _planned

    version = folder / "version" / "train"
    version.mkdir(parents=True)
    for part in range(parts):
        with table.Writer(table.file(version, part), table.SAMPLES) as writer:
            for sample in given[part::parts]:
                writer.add_sample(sample)
    job = SimpleNamespace(
        input=SimpleNamespace(path=folder / "version"),
        step=SimpleNamespace(parameters={"samples_per_shard": per_shard}),
    )
    (folder / "work").mkdir()
    shop = Workshop(folder / "work", Local(), lambda _: None)
    shards = one_each((f"train/{path.name}", 1) for path in table.files(version))
    plan = shop.once("planned", lambda to: _planned(job, shards, to)).file(PLAN)
    done = shop.every("scattered", ScatterShard(folder / "version", plan), shards, what="rows")
    numbers = range(len(_read_plan(plan).first_shards))
    written = shop.every(
        "written", WriteBucket(plan, per_shard), [_bucket(n, done) for n in numbers], what="rows"
    )
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for one in written
        for path in one.folder.glob("*.tar")
    }


@pytest.mark.parametrize(("parts", "size"), [(1, 10**9), (1, 1), (3, 700), (7, 5_000)])
def test_files_and_buckets_do_not_matter(tmp_path, monkeypatch, parts, size):
    given = samples(95)
    (tmp_path / "plain").mkdir()
    write_shards(tmp_path / "plain", in_order(given), 10)
    expected = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "plain").iterdir()
    }
    monkeypatch.setattr(buckets, "BUCKET_BYTES", size)
    assert scattered(tmp_path, given, parts, 10) == expected
    assert len(expected) == 10


def test_the_last_shard_is_full(tmp_path):
    assert len(scattered(tmp_path, samples(20), 2, 10)) == 2


def test_two_samples_with_one_id_are_refused(tmp_path):
    twins = [*samples(5), *samples(1)]
    with pytest.raises(StepError, match="Two samples have the id"):
        scattered(tmp_path, twins, 2, 10)


def test_images_of_a_bucket_are_read_one_by_one(tmp_path):
    files = Files(tmp_path, "images")
    given = [Stored(f"{n:064x}", "jpg" if n % 2 else "webp", bytes([n]) * n) for n in range(6)]
    for number, one in enumerate(given):
        files.write_image(number % 2, one)
    files.close()
    paths = sorted(tmp_path.iterdir())
    assert [path.name for path in paths] == ["000.images", "001.images"]
    found = [one.read() for one in held(paths)]
    assert sorted(found, key=lambda one: one.sha256) == given


def test_the_policy_is_part_of_the_content():
    assert energon.content_id(["a"], 1, Loss()) != energon.content_id(["a"], 1, Loss(document=()))
