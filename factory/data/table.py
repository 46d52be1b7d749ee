"""Samples in Parquet: common columns, and one nullable struct per kind of content.

A new kind adds a struct and leaves the other columns as they are. Rejected rows lie in a table of
their own, with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factory.data.sample import Sample

BATCH_ROWS = 1_000
BATCH_CHARACTERS = 16_000_000
"""A batch is written when it has so many rows or characters, whichever comes first."""

_SECTION = pa.struct([pa.field("heading", pa.string()), pa.field("text", pa.string())])

SAMPLES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("license", pa.string(), nullable=False),
        pa.field("meta", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field(
            "document",
            pa.struct([pa.field("title", pa.string()), pa.field("sections", pa.list_(_SECTION))]),
        ),
        pa.field(
            "question",
            pa.struct(
                [
                    pa.field("question", pa.string()),
                    pa.field("options", pa.list_(pa.string())),
                    pa.field("answer", pa.string()),
                    pa.field("explanation", pa.string()),
                ]
            ),
        ),
    ]
)

REJECTED = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("excerpt", pa.string()),
    ]
)


def columns() -> dict[str, str]:
    """Names and types of the columns of samples, for the manifest."""
    return {one.name: f"{one.type}" for one in SAMPLES}


@dataclass
class Writer:
    """Appends rows to one Parquet file, in batches."""

    path: Path
    schema: pa.Schema
    _batch: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], init=False)
    _characters: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._file = pq.ParquetWriter(self.path, self.schema, compression="zstd")

    def add(self, row: Mapping[str, Any], characters: int = 0) -> None:
        """Append a row; `characters` is about how large it is."""
        self._batch.append(dict(row))
        self._characters += characters
        if len(self._batch) >= BATCH_ROWS or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def add_sample(self, sample: Sample) -> None:
        """Append a sample."""
        row = sample.as_dict()
        row["meta"] = sorted(row["meta"].items())
        self.add(row, sample.characters)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._batch:
            batch: pa.Table = pa.Table.from_pylist(self._batch, schema=self.schema)
            self._file.write_table(batch)
        self._batch, self._characters = [], 0


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write a whole file of samples."""
    with Writer(path, SAMPLES) as writer:
        for sample in samples:
            writer.add_sample(sample)


def samples(path: Path) -> Iterator[Sample]:
    """Read a file of samples, a batch at a time."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            for row in batch.to_pylist():
                yield Sample.from_dict(row)


def chosen(path: Path, ids: Iterable[str]) -> dict[str, Sample]:
    """The samples of these ids, found without making the others."""
    wanted = pa.array(list(ids), pa.string())
    found: dict[str, Sample] = {}
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            for row in batch.filter(pc.is_in(batch.column("id"), wanted)).to_pylist():
                found[row["id"]] = Sample.from_dict(row)
    return found


def column(path: Path, name: str) -> list[str]:
    """One column of text."""
    return [str(value or "") for value in pq.read_table(path, columns=[name])[name].to_pylist()]


def rows(path: Path) -> int:
    """Number of rows, from the file's footer."""
    return pq.read_metadata(path).num_rows


def differences(path: Path) -> list[str]:
    """How the columns of a file differ from those of samples."""
    found = {one.name: one for one in pq.read_schema(path)}
    wrong = [f"column {one.name} is missing" for one in SAMPLES if one.name not in found]
    wrong += [f"column {name} is unknown" for name in found if name not in SAMPLES.names]
    for wanted in SAMPLES:
        other = found.get(wanted.name, wanted)
        if not other.equals(wanted):
            wrong.append(f"column {wanted.name} is {other.type}, not {wanted.type}")
    return wrong
