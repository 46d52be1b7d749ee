"""The step `energon`: the samples of one split in shards that Megatron-Energon loads.

The samples are scattered to buckets (`buckets`), each bucket is sorted and written as tars, and
Energon makes its index of those (`energon`). Only ids are held for the whole split at once.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow.parquet as pq

from factory.data import energon, layout, table
from factory.data.buckets import Buckets, Files, Held, held, name
from factory.data.energon import Entry, Stored
from factory.data.engines import Tick
from factory.data.finished import Facts, Finished
from factory.data.images.image import EXTENSIONS
from factory.data.phases import Workshop
from factory.data.sample import Sample, canonical
from factory.data.shards import Shard
from factory.namespace import Staging

if TYPE_CHECKING:
    from factory.data.job import Job

LINES = "lines"
IMAGES = "images"
SHOWN = "shown.json"
"""Which buckets show which image."""

PLAN = "plan.json"


def prepared(job: "Job", staging: Staging, shop: Workshop) -> None:
    """Energon: the samples of one split in shards, with Energon's index."""
    split, per_shard = job.step.split, _per_shard(job)
    shards = job.table(layout.split_table(split))
    planned = shop.once("planned", lambda folder: _planned(job, shards, folder))
    buckets = _read_plan(planned.file(PLAN))
    task = ScatterShard(job.input.path, planned.file(PLAN))
    scattered = shop.every("scattered", task, shards, what="samples sorted")
    images = _images(job, shop, planned, scattered)
    done = shop.every(
        "written",
        WriteBucket(planned.file(PLAN), per_shard),
        [_bucket(number, scattered + images) for number in range(len(buckets.first_shards))],
        what="entries written",
    )
    for one in done:
        for file, entry in one.files.items():
            staging.link(one.file(file), file, entry)
    energon.prepare(staging.path, buckets.shards, job.say)
    policy = job.step.dataset.loss
    energon.write_loss(staging.path, policy)
    contents = [content for one in done for content in one.facts["contents"]]
    divided = layout.facts_of(job.input.path)
    staging.describe(
        content_id=energon.content_id(contents, per_shard, policy),
        rows=planned.facts["rows"],
        facts={
            "shards": buckets.shards,
            "split_rows": divided["rows"][split],
            "split_content": divided["contents"][split],
            "characters": sum(one.facts["characters"] for one in scattered),
        },
    )


def _per_shard(job: "Job") -> int:
    return int(job.step.parameters["samples_per_shard"])


def _planned(job: "Job", shards: Sequence[Shard], folder: Path) -> Facts:
    places: list[str] = []
    size = 0
    for shard in shards:
        path = job.input.path / shard.names[0]
        for batch in table.batches(path, ["id"]):
            places += [energon.place(one) for one in cast("list[str]", batch[0].to_pylist())]
        groups = pq.read_metadata(path)
        size += sum(groups.row_group(n).total_byte_size for n in range(groups.num_row_groups))
    places.sort()
    buckets = Buckets.plan(places, _per_shard(job), size)
    plan = [list(buckets.first_shards), list(buckets.first_places), buckets.shards]
    (folder / PLAN).write_text(json.dumps(plan))
    return {"rows": len(places)}


def _read_plan(path: Path) -> Buckets:
    firsts, places, shards = json.loads(path.read_bytes())
    return Buckets(firsts, places, shards)


@dataclass(frozen=True)
class ScatterShard:
    """Writes the samples of a shard to the buckets that they go to, each with its place."""

    version: Path
    plan: Path

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write a file of lines for each bucket, and which images they show."""
        buckets = _read_plan(self.plan)
        shown: dict[str, set[int]] = {}
        characters = 0
        with closing(Files(folder, LINES)) as files:
            for batch in table.batches(self.version / shard.names[0]):
                for row in table.plain(batch):
                    place = energon.place(row["id"])
                    bucket = buckets.of(place)
                    files.write(bucket, f"{place} ".encode() + canonical(row) + b"\n")
                    sample = Sample.from_dict(row)
                    characters += sample.characters
                    for picture in sample.pictures:
                        shown.setdefault(picture.image, set()).add(bucket)
                tick(batch.num_rows)
        if shown:
            listed = {image: sorted(numbers) for image, numbers in shown.items()}
            (folder / SHOWN).write_text(json.dumps(listed))
        return {"characters": characters}


def _images(
    job: "Job", shop: Workshop, planned: Finished, scattered: Sequence[Finished]
) -> list[Finished]:
    shown = tuple(one.file(SHOWN) for one in scattered if SHOWN in one.files)
    if not shown:
        return []
    task = ScatterImages(job.input.path, shown)
    return shop.every(IMAGES, task, job.table(layout.IMAGES), what="images sorted")


@dataclass(frozen=True)
class ScatterImages:
    """Writes the images of a shard to every bucket that shows them."""

    version: Path
    shown: tuple[Path, ...]

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write a file of images for each bucket."""
        wanted: dict[str, set[int]] = {}
        for path in self.shown:
            for image, numbers in json.loads(path.read_bytes()).items():
                wanted.setdefault(image, set()).update(numbers)
        columns = ["sha256", "format", "data"]
        with closing(Files(folder, IMAGES)) as files:
            for batch in table.batches(self.version / shard.names[0], columns):
                for row in batch.to_pylist():
                    image = Stored(row["sha256"], EXTENSIONS[row["format"]], row["data"])
                    for bucket in sorted(wanted.get(image.sha256, ())):
                        files.write_image(bucket, image)
                tick(batch.num_rows)
        return {}


def _bucket(number: int, sources: Sequence[Finished]) -> Shard:
    """A bucket as a shard: the files that hold parts of it."""
    files = [
        (str(one.file(file)), one.files[file].size)
        for one in sources
        for file in (name(number, LINES), name(number, IMAGES))
        if file in one.files
    ]
    return Shard(number, tuple(file for file, _ in files), sum(size for _, size in files))


@dataclass(frozen=True)
class WriteBucket:
    """Sorts the samples of a bucket and writes its shards of the output."""

    plan: Path
    per_shard: int

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write the tars."""
        numbers = _read_plan(self.plan).shards_of(shard.number)
        lines: list[bytes] = []
        for path in shard.names:
            if path.endswith(LINES):
                lines += Path(path).read_bytes().splitlines()
        lines.sort()
        images = {
            one.sha256: one
            for one in held([Path(path) for path in shard.names if path.endswith(IMAGES)])
        }
        contents: list[str] = []
        for start, number in zip(range(0, len(lines), self.per_shard), numbers, strict=True):
            part = lines[start : start + self.per_shard]
            entries = _entries(part, images)
            contents.append(energon.write_shard(folder / energon.shard_name(number), entries))
            tick(len(part))
        return {"contents": contents}


def _entries(lines: Sequence[bytes], images: dict[str, Held]) -> Iterator[Entry]:
    for line in lines:
        _, _, content = line.partition(b" ")
        row: dict[str, Any] = json.loads(content)
        pictures: Sequence[str] = ()
        if images:
            pictures = list(dict.fromkeys(one.image for one in Sample.from_dict(row).pictures))
        yield Entry(row["id"], content, [images[one].read() for one in pictures])
