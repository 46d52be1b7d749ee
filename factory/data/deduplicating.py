"""The step `deduplicated`: signatures of each shard, one decision over all, and what is left.

What of a sample is compared is in `deduplicate`, how in `dedup`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factory.data import deduplicate, layout, publish, table
from factory.data.content import RowsHash
from factory.data.dedup_policy import Dedup
from factory.data.duplicate_checks import hash_of_ids
from factory.data.engines import Tick
from factory.data.finished import Facts, Finished
from factory.data.phases import Workshop
from factory.data.sample import Sample
from factory.data.shards import Shard
from factory.data.statistics import Statistics
from factory.namespace import Staging

if TYPE_CHECKING:
    from factory.data.job import Job

SIGNATURES = "signatures.arrow"
REMOVED_FILE = "removed.parquet"
SAMPLES_FILE = "samples.parquet"


def deduplicated(job: "Job", staging: Staging, shop: Workshop) -> None:
    """Deduplicated: the samples that stay, and beside them which ones went, and for which."""
    shards = job.table(layout.SAMPLES)
    rows = job.input.manifest.rows or 0
    decided = _decided(job, shop, shards)
    task = KeepShard(job.input.path, decided.file(REMOVED_FILE), rows)
    done = shop.every("kept", task, shards, what="samples sorted")
    kept, counted = RowsHash(), Statistics(rows)
    for one in done:
        kept.merge(RowsHash.from_facts(one.facts["kept"]))
        counted.merge(Statistics.from_facts(one.facts["statistics"]))
    publish.take_over(staging, layout.SAMPLES, SAMPLES_FILE, done)
    publish.take_over(staging, layout.REMOVED, REMOVED_FILE, [decided])
    publish.share(staging, job.input, layout.IMAGES)
    seen = layout.facts_of(job.input.path)
    staging.describe(
        content_id=kept.hexdigest(),
        rows=kept.count,
        columns=table.columns(),
        facts={
            "duplicates": decided.facts["duplicates"],
            "clean_rows": rows,
            "clean_ids": _ids(job, shards),
            "rows_read": seen["rows_read"],
            "rejected_rows": sum(seen["rejected"].values()),
            "statistics": counted.facts(),
        },
    )


def _ids(job: "Job", shards: Sequence[Shard]) -> dict[str, Any]:
    """The ids of everything that was cleaned, as a hash: a check compares what became of them."""
    return hash_of_ids(job.input.path / shard.names[0] for shard in shards).facts()


@dataclass(frozen=True)
class SignShard:
    """Makes the signatures of the samples of one shard."""

    version: Path
    policy: Dedup

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write them."""

        def passing(batch: pa.RecordBatch) -> list[Sample]:
            tick(batch.num_rows)
            return [Sample.from_dict(row) for row in table.plain(batch)]

        batches = table.batches(self.version / shard.names[0])
        samples = (sample for batch in batches for sample in passing(batch))
        deduplicate.sign(samples, self.policy, folder / SIGNATURES)
        return {}


@dataclass(frozen=True)
class KeepShard:
    """Writes the samples of one shard that are not removed, and counts them."""

    version: Path
    removed: Path
    rows: int
    """Of all shards, before anything was removed."""

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write what stays."""
        gone: Any = pq.read_table(self.removed, columns=["id"]).column("id")
        gone = gone.cast(pa.string()).combine_chunks()
        kept, counted = RowsHash(), Statistics(self.rows)
        with table.BatchWriter(folder / SAMPLES_FILE, table.SAMPLES) as writer:
            for batch in table.batches(self.version / shard.names[0]):
                left = batch.filter(pc.invert(pc.is_in(batch.column("id"), gone)))
                writer.add(left)
                for row in table.plain(left):
                    kept.add(row)
                    counted.add(Sample.from_dict(row))
                tick(batch.num_rows)
        return {"kept": kept.facts(), "statistics": counted.facts()}


def _decided(job: "Job", shop: Workshop, shards: Sequence[Shard]) -> Finished:
    policy = job.step.dataset.deduplicate
    signed: list[Path] = []
    if policy is not None:
        task = SignShard(job.input.path, policy)
        done = shop.every("signed", task, shards, what="samples compared")
        signed = [one.file(SIGNATURES) for one in done]

    def decide(folder: Path) -> Facts:
        found = deduplicate.none_removed()
        if policy is not None:
            found = deduplicate.removed(signed, policy)
        deduplicate.write(found, folder / REMOVED_FILE)
        return {"duplicates": dict(deduplicate.counts(found))}

    return shop.once("removed", decide)
