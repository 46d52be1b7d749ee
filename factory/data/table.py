"""Samples in Parquet: common columns, and one nullable struct per kind of content.

A table is a directory of Parquet files, `samples/00000.parquet` and so on, one per shard of the
input; whoever reads a table gets the rows of its files in the order of their numbers.

The columns are in `schema`. Rejected rows lie in a table of their own, with the reason.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factory.data.sample import Sample
from factory.data.schema import SAMPLES

BATCH_ROWS = 1_000
BATCH_CHARACTERS = 16_000_000
"""A batch is written when it has so many rows or characters, whichever comes first."""

IMAGES = pa.schema(
    [
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("format", pa.string(), nullable=False),
        pa.field("width", pa.int32(), nullable=False),
        pa.field("height", pa.int32(), nullable=False),
        pa.field("mode", pa.string(), nullable=False),
        pa.field("meta", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("data", pa.binary(), nullable=False),
    ]
)
"""Each image of a version once, by the hash of its bytes, which samples name."""


def columns() -> dict[str, str]:
    """Names and types of the columns of samples, for the manifest."""
    return {one.name: f"{one.type}" for one in SAMPLES}


@dataclass
class _Appending(ABC):
    """One Parquet file that is written in batches; a batch that waits is written at the end."""

    path: Path
    schema: pa.Schema

    def __post_init__(self) -> None:
        self._file = pq.ParquetWriter(self.path, self.schema, compression="zstd")

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

    @abstractmethod
    def _flush(self) -> None:
        """Write what waits."""


@dataclass
class Writer(_Appending):
    """Appends rows to one Parquet file, in batches."""

    _batch: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], init=False)
    _characters: int = field(default=0, init=False)

    def add(self, row: Mapping[str, Any], characters: int = 0) -> None:
        """Append a row; `characters` is about how large it is."""
        self._batch.append(dict(row))
        self._characters += characters
        if len(self._batch) >= BATCH_ROWS or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def add_sample(self, sample: Sample) -> None:
        """Append a sample."""
        self.add_plain(sample.as_dict(), sample.characters)

    def add_plain(self, sample: Mapping[str, Any], characters: int) -> None:
        """Append a sample, given as JSON has it."""
        self.add({**sample, "meta": sorted(sample["meta"].items())}, characters)

    def _flush(self) -> None:
        if self._batch:
            batch: pa.Table = pa.Table.from_pylist(self._batch, schema=self.schema)
            self._file.write_table(batch)
        self._batch, self._characters = [], 0


@dataclass
class BatchWriter(_Appending):
    """Appends rows that are in Arrow form already, such as some of a batch that was read."""

    rows: int = field(default=0, init=False)
    _waiting: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch], init=False)
    _rows: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        self._waiting.append(batch)
        self.rows += batch.num_rows
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= BATCH_ROWS or self._bytes >= BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(pa.Table.from_batches(self._waiting, schema=self.schema))
        self._waiting, self._rows, self._bytes = [], 0, 0


def file(directory: Path, number: int) -> Path:
    """The file of a table that holds the rows of that shard."""
    return directory / f"{number:05d}.parquet"


def files(directory: Path) -> list[Path]:
    """The files of a table, in order.

    Raises:
        FileNotFoundError: there is no such table, or it has no file.
    """
    found = sorted(directory.glob("*.parquet"), key=lambda path: (len(path.name), path.name))
    if not found:
        raise FileNotFoundError(f"{directory} is no table: it holds no Parquet file")
    return found


def write_samples(directory: Path, samples: Iterable[Sample]) -> None:
    """Write samples as a table of one file."""
    directory.mkdir(exist_ok=True)
    with Writer(file(directory, 0), SAMPLES) as writer:
        for sample in samples:
            writer.add_sample(sample)


def samples(directory: Path) -> Iterator[Sample]:
    """Read a table of samples, a batch at a time."""
    return map(Sample.from_dict, plain_rows(directory))


def plain_rows(directory: Path) -> Iterator[dict[str, Any]]:
    """Read a table of samples as JSON has them, without making a `Sample` of each."""
    for path in files(directory):
        for batch in batches(path):
            yield from plain(batch)


def plain(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows of samples as `Sample.as_dict` gives them."""
    for row in batch.to_pylist():
        kind = row["kind"]
        sample = {name: row[name] for name in ("id", "group", "kind", "source", "license")}
        yield {**sample, "meta": dict(row["meta"]), kind: row[kind]}


def chosen(directory: Path, ids: Iterable[str]) -> dict[str, Sample]:
    """The samples of these ids, found without making the others."""
    wanted = pa.array(list(ids), pa.string())
    found: dict[str, Sample] = {}
    for path in files(directory):
        for batch in batches(path):
            for row in plain(batch.filter(pc.is_in(batch.column("id"), wanted))):
                found[row["id"]] = Sample.from_dict(row)
    return found


def column(directory: Path, name: str) -> list[str]:
    """One column of text."""
    return [str(value or "") for value in read(directory, [name])[name].to_pylist()]


def count(directory: Path, name: str, value: str) -> int:
    """How often a value stands in a column of text, a file at a time."""
    found = 0
    for path in files(directory):
        content: Any = pq.read_table(path, columns=[name])
        found += int(content.filter(pc.field(name) == pc.scalar(value)).num_rows)
    return found


def read(directory: Path, columns: list[str] | None = None) -> pa.Table:
    """A whole table, or some columns of it; for tables that fit into the memory."""
    return pa.concat_tables(pq.read_table(path, columns=columns) for path in files(directory))


def rows(directory: Path) -> int:
    """Number of rows, from the footers of the files."""
    return sum(pq.read_metadata(path).num_rows for path in files(directory))


def differences(directory: Path) -> list[str]:
    """How the columns of the first file that is not right differ from those of samples."""
    for path in files(directory):
        if wrong := _differences(path):
            return wrong
    return []


def batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Read one file, a batch at a time: never more than a few groups of rows at once."""
    with pq.ParquetFile(path) as opened:
        yield from opened.iter_batches(batch_size=BATCH_ROWS, columns=columns)


def _differences(path: Path) -> list[str]:
    found = {one.name: one for one in pq.read_schema(path)}
    wrong = [f"column {one.name} is missing" for one in SAMPLES if one.name not in found]
    wrong += [f"column {name} is unknown" for name in found if name not in SAMPLES.names]
    for wanted in SAMPLES:
        other = found.get(wanted.name, wanted)
        if not other.equals(wanted):
            wrong.append(f"column {wanted.name} is {other.type}, not {wanted.type}")
    return wrong
