"""Parquet: rows of a columnar file, a few at a time.

A file that lies in an archive or is compressed as a whole has to be held in memory: its index is at
its end.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factory.data.formats.errorpage import refuse_page
from factory.data.formats.faults import NO_DATE, NOT_UTF_8, fault
from factory.data.formats.opened import BUFFER, Opened
from factory.data.row import Row
from factory.errors import BadFile

BATCH_ROWS = 256
"""Rows that are made into Python objects at once; one may hold an image."""


def rows(file: Opened) -> Iterator[Row]:
    """One row per record."""
    refuse_page(file.stream, file.name, "a Parquet file")
    for number, record in enumerate(_records(file), start=1):
        bad = record if isinstance(record, str) else fault(record)
        if bad is None:
            yield file.row(number, json=record)
        else:
            yield file.bad(number, bad)


def _records(file: Opened) -> Iterator[dict[str, Any] | str]:
    """Each record, or what is wrong with it where its values are none that Python has."""
    read = 0
    try:
        source = file.path if file.path is not None else pa.BufferReader(file.whole())
        with pq.ParquetFile(source, pre_buffer=False, buffer_size=BUFFER) as table:
            _refuse_twice(file.name, table.schema_arrow.names)
            for batch in table.iter_batches(BATCH_ROWS, use_threads=False):
                yield from _objects(batch)
                read += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadFile(
            f"{file.name}, after row {read:,}: damaged or no Parquet: {_reason(error)}."
        ) from None


def _objects(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | str]:
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for place in range(batch.num_rows):
            yield _object(batch.slice(place, 1))


def _object(row: pa.RecordBatch) -> dict[str, Any] | str:
    try:
        return row.to_pylist()[0]
    except UnicodeDecodeError:
        return NOT_UTF_8
    except (ValueError, OverflowError):  # Arrow counts days and nanoseconds further than Python
        return NO_DATE


def _refuse_twice(name: str, columns: list[str]) -> None:
    twice = next((one for place, one in enumerate(columns) if one in columns[:place]), None)
    if twice is not None:
        raise BadFile(f"{name}: has two columns named {twice!r}, so that one hides the other.")


def _reason(error: Exception) -> str:
    """What Arrow says, without the path."""
    return " ".join(str(error).split()).partition(". Detail")[0].rstrip(".") or type(error).__name__
