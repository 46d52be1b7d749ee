"""Deduplicating: which samples go.

What of a sample is compared is in `compared`. How texts are compared and who of two stays is in
`dedup`; what a declaration can set is in `dedup_policy`. Only samples of one dataset are compared,
and all count alike.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
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


def sign(samples: Iterable[Sample], policy: Dedup, path: Path) -> None:
    """Write the signatures of samples, from which `removed` decides; a batch at a time."""
    with pa.ipc.new_file(str(path), schema(policy)) as writer:
        for batch in _batches(samples):
            writer.write_batch(local(_rows(batch), policy))


def removed(signatures: Iterable[Path], policy: Dedup) -> pa.Table:
    """The table of removed samples: id, id of the kept one, kind, similarity.

    Signatures stay in their files, so memory holds ids and band keys, which are small.

    Raises:
        StepError: two samples have one id.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(pa.memory_map(str(path))) for path in signatures]
        tables = [pa.ipc.open_file(file).read_all() for file in opened]
        return reduce(tables, policy).removed


def write(removed: pa.Table, path: Path) -> None:
    """Write the table of removed samples."""
    pq.write_table(removed, path, compression="zstd")


def none_removed() -> pa.Table:
    """The table of a dataset whose samples all stay."""
    return REMOVED.empty_table()


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
