"""Images are stored once in a version, whichever shards show them, and later steps share them."""

import dataclasses
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from factory.data import Dataset, Images, Rejected, Row, Sample, energon, layout, shards, table
from factory.data.steps import steps
from tests.data.kinds import image

PIXELS = {name: name.encode() * 50 for name in "ABCD"}


def clean(row: Row) -> Sample | Rejected:
    names = str(row.record["shows"])
    parts = [part for name in names for part in (image(PIXELS[name]), f"Caption of {name}.")]
    return Sample.image_text(id=row.text("id"), parts=[*parts, row.text("id")])


def cleaned_in(runner, dataset: Dataset) -> Path:
    return runner.until(dataset, "clean")[0].path


@pytest.fixture
def pictures(letters: Dataset, deliver, settings, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Four shards: the second repeats one image, the third has no other, the fourth has none new
    in its second row."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 1)
    (settings.drops / "letters" / "letters.jsonl").unlink()
    for number, shown in enumerate((["AB", "A"], ["BC"], ["C", "A"], ["D", "DA"])):
        rows = [{"id": f"{number}-{n}", "shows": one} for n, one in enumerate(shown)]
        deliver(rows, f"{number}.jsonl")
    return dataclasses.replace(letters, clean=clean, images=Images(), deduplicate=None)


def names_by_file(directory: Path) -> dict[str, list[str]]:
    hashes = {image(data).sha256: name for name, data in PIXELS.items()}
    return {
        path.name: [hashes[one] for one in pq.read_table(path)["sha256"].to_pylist()]
        for path in table.files(directory / layout.IMAGES)
    }


def test_an_image_is_kept_by_the_first_shard_that_has_it(runner, pictures):
    path = cleaned_in(runner, pictures)
    assert names_by_file(path) == {
        "00000.parquet": ["A", "B"],
        "00001.parquet": ["C"],
        "00003.parquet": ["D"],
    }
    assert table.rows(path / layout.SAMPLES) == 7
    stored = {row["sha256"]: row for row in table.read(path / layout.IMAGES).to_pylist()}
    for data in PIXELS.values():
        one = image(data)
        assert stored[one.sha256]["data"] == data
        assert (stored[one.sha256]["format"], stored[one.sha256]["mode"]) == (one.format, one.mode)


def test_shards_that_have_nothing_in_common_are_left_as_they_are(runner, pictures, deliver):
    for number, shown in enumerate("ABCD"):
        deliver([{"id": f"{number}", "shows": shown}], f"{number}.jsonl")
    assert list(names_by_file(cleaned_in(runner, pictures)).values()) == [
        ["A"],
        ["B"],
        ["C"],
        ["D"],
    ]


def test_later_steps_have_the_same_files(runner, pictures):
    divided, records = runner.until(pictures, "split")
    assert all(record.passed for record in records.values()), records
    cleaned = runner.namespace.current(pictures.key / "clean")
    kept = runner.namespace.current(pictures.key / "deduplicated")
    for path in table.files(cleaned.path / layout.IMAGES):
        for version in (kept, divided):
            assert (version.path / layout.IMAGES / path.name).samefile(path)
            assert runner.namespace.verify(version) == []


def test_without_images_there_is_no_table_of_them(runner, letters):
    assert not (cleaned_in(runner, letters) / layout.IMAGES).exists()


def test_an_image_needs_a_policy_and_its_bytes(runner, pictures, deliver):
    silent = dataclasses.replace(pictures, images=None)
    path = cleaned_in(runner, silent)
    assert {row["reason"] for row in table.read(path / layout.REJECTED).to_pylist()} == {
        "an image in a dataset that declares none"
    }
    named = dataclasses.replace(pictures, clean=without_bytes)
    path = cleaned_in(runner, named)
    assert {row["reason"] for row in table.read(path / layout.REJECTED).to_pylist()} == {
        "an image that is named and not given"
    }


def without_bytes(row: Row) -> Sample:
    from factory.data.kinds import Picture

    return Sample.image_text(id=row.text("id"), parts=[Picture(image().sha256), "Caption."])


@pytest.mark.slow
def test_images_lie_beside_the_samples_that_show_them(runner, pictures):
    runner.until(pictures, "split")
    divided = runner.namespace.current(pictures.key / "split")
    (step,) = [one for one in steps(pictures) if one.name == "energon/train"]
    version, records = runner.checked(step)
    assert all(record.passed for record in records.values()), records
    expected: dict[str, bytes] = {}
    for sample in table.samples(divided.path / layout.split_table("train")):
        name = energon.entry_name(sample.id)
        for one in sample.pictures:
            data = next(data for data in PIXELS.values() if image(data).sha256 == one.image)
            expected[f"{name}.{one.image[:16]}.png"] = data
    with tarfile.open(version.path / "shard-000000.tar") as tar:
        found = {
            one.name: tar.extractfile(one).read()
            for one in tar.getmembers()
            if not one.name.endswith(".json")
        }
    assert found == expected
    assert len(found) >= 5
