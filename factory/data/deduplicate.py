"""Deduplicating: which samples go.

What of a sample is compared is in `compared`. How texts are compared and who of two stays is in
`dedup`; what a declaration can set is in `dedup_policy`. Only samples of one dataset are compared,
and all count alike.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factory.data import table
from factory.data.compared import compared
from factory.data.dedup import REMOVED, local, reduce, schema
from factory.data.dedup_policy import Dedup
from factory.data.sample import Sample
from factory.data.table import BATCH_CHARACTERS, BATCH_ROWS

KINDS = ("exact", "near")
"""Equal after normalization, or at least as similar as the threshold says."""


def removed(samples: Iterable[Sample], policy: Dedup | None, scratch: Path) -> pa.Table:
    """The table of removed samples: id, id of the kept one, kind, similarity.

    Signatures lie in the scratch file, so memory holds a batch of texts and no more; ids and band
    keys stay small. The file is gone afterwards.

    Raises:
        StepError: two samples have one id.
    """
    if policy is None:
        return REMOVED.empty_table()
    try:
        with pa.ipc.new_file(str(scratch), schema(policy)) as writer:
            for batch in _batches(samples):
                writer.write_batch(local(_rows(batch), policy))
        with pa.memory_map(str(scratch)) as file:
            return reduce([pa.ipc.open_file(file).read_all()], policy).removed
    finally:
        scratch.unlink(missing_ok=True)


def write(removed: pa.Table, directory: Path) -> None:
    """Write the table of removed samples."""
    directory.mkdir()
    pq.write_table(removed, table.file(directory, 0), compression="zstd")


def ids(removed: pa.Table) -> set[str]:
    """Ids of the removed samples."""
    return {f"{one}" for one in removed.column("id").to_pylist()}


def examples(directory: Path, count: int) -> list[dict[str, Any]]:
    """A few removed samples as rows of the table, the least similar first: those to look at."""
    found = table.read(directory).sort_by([("similarity", "ascending"), ("id", "ascending")])
    return found.slice(0, count).to_pylist()


def counts(removed: pa.Table) -> dict[str, int]:
    """How many were removed, by kind."""
    found = Counter(removed.column("kind").to_pylist())
    return {kind: found[kind] for kind in KINDS}


def _batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    batch: list[Sample] = []
    characters = 0
    for sample in samples:
        batch.append(sample)
        characters += sample.characters
        if len(batch) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _rows(samples: list[Sample]) -> pa.RecordBatch:
    """What `dedup.local` reads. Of near duplicates the longer one, in bytes, is kept."""
    texts, scopes = zip(*map(compared, samples), strict=True)
    columns: dict[str, Any] = {
        "id": [sample.id for sample in samples],
        "text": texts,
        "scope": scopes,
        "priority": pa.array([0] * len(samples), pa.int64()),
        "tokens": pa.array([len(text.encode()) for text in texts], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)
