"""The step `split`: one table of samples per split, each shard divided by itself.

Which split a group belongs to follows from its hash (`split`). Only where a split would be empty,
groups are moved; that takes a look at all groups, before any shard is divided.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from factory.data import layout, publish, split, table
from factory.data.content import RowsHash
from factory.data.engines import Tick
from factory.data.finished import Facts
from factory.data.phases import Workshop
from factory.data.sample import canonical
from factory.data.shards import Shard
from factory.namespace import Staging

if TYPE_CHECKING:
    from factory.data.job import Job

MOVED = "moved.json"


def divided(job: "Job", staging: Staging, shop: Workshop) -> None:
    """Split: a table of samples per split."""
    shares = job.step.dataset.split
    shards = job.table(layout.SAMPLES)
    assigned = shop.once("assigned", lambda folder: _assigned(job, shards, folder))
    task = DivideShard(job.input.path, shares, assigned.file(MOVED))
    done = shop.every("divided", task, shards, what="samples split")
    hashes = {name: RowsHash() for name in shares}
    for one in done:
        for name, total in hashes.items():
            total.merge(RowsHash.from_facts(one.facts[name]))
    for name in shares:
        publish.take_over(staging, layout.split_table(name), _file(name), done)
    publish.share(staging, job.input, layout.IMAGES)
    contents: dict[str, Any] = {name: one.hexdigest() for name, one in hashes.items()}
    staging.describe(
        content_id=hashlib.sha256(canonical(contents)).hexdigest(),
        rows=sum(one.count for one in hashes.values()),
        columns=table.columns(),
        facts={
            "rows": {name: one.count for name, one in hashes.items()},
            "groups": assigned.facts["groups"],
            "filled": assigned.facts["filled"],
            "contents": contents,
            "input_rows": job.input.manifest.rows,
            "input_content": job.input.manifest.content_id,
        },
    )


@dataclass(frozen=True)
class DivideShard:
    """Writes the samples of one shard into a file for each split."""

    version: Path
    shares: Mapping[str, float]
    moved: Path
    """The split of those groups that are not where their hash puts them."""

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write them."""
        moved: dict[str, str] = json.loads(self.moved.read_bytes())
        hashes = {name: RowsHash() for name in self.shares}
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(table.BatchWriter(folder / _file(name), table.SAMPLES))
                for name in self.shares
            }
            for batch in table.batches(self.version / shard.names[0]):
                names = [
                    moved.get(group) or split.split_of(group, self.shares)
                    for group in _groups(batch)
                ]
                for name in set(names):
                    chosen = batch.filter(pa.array([one == name for one in names]))
                    writers[name].add(chosen)
                    for row in table.plain(chosen):
                        hashes[name].add(row)
                tick(batch.num_rows)
        return {name: one.facts() for name, one in hashes.items()}


def _assigned(job: "Job", shards: Sequence[Shard], folder: Path) -> Facts:
    assignment = split.assign(_distinct(job.input.path, shards), job.step.dataset.split)
    (folder / MOVED).write_text(json.dumps(assignment.moved), encoding="utf-8")
    counts: Counter[str] = Counter(assignment.split_of.values())
    names = job.step.dataset.split
    return {
        "groups": {name: counts[name] for name in names},
        "filled": dict(assignment.filled),
    }


def _distinct(version: Path, shards: Sequence[Shard]) -> Iterable[str]:
    seen: set[str] = set()
    for shard in shards:
        for batch in table.batches(version / shard.names[0], ["group"]):
            seen.update(_groups(batch))
    return seen


def _groups(batch: pa.RecordBatch) -> list[str]:
    column: Any = batch.column("group")
    return column.to_pylist()


def _file(name: str) -> str:
    return f"{name}.parquet"
