"""All local tables as one collection in the total order: what is kept first comes first.

Priority, then more tokens, then content hash, then id: a total order over distinct ids, so the
outcome cannot depend on shards, workers or arrival. Shingles stay where they are (in memory-mapped
tables: on disk) and are looked up by document.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factory.data.dedup.local import schema
from factory.data.dedup_policy import Dedup
from factory.errors import StepError


class Collection:
    """Documents of all shards, numbered from 0 in the total order."""

    def __init__(self, tables: Iterable[pa.Table | pa.RecordBatch], policy: Dedup) -> None:
        self._pieces = [piece for table in tables for piece in _pieces(table, policy)]
        self.bands = policy.bands
        columns = pa.Table.from_batches(
            [piece.select(["id", "priority", "tokens", "content"]) for piece in self._pieces],
            schema=_ordered_by(policy),
        )
        order = pc.sort_indices(
            columns,
            sort_keys=[
                ("priority", "descending"),
                ("tokens", "descending"),
                ("content", "ascending"),
                ("id", "ascending"),
            ],
        )
        self.ids: Any = _whole(columns.column("id").take(order))
        _refuse_repeated(self.ids)
        self.contents: Any = _whole(columns.column("content").take(order))
        self._order = order.to_numpy()
        self._flat, begins, ends, owners = _shingle_places(self._pieces)
        self._begins, self._ends = begins[self._order], ends[self._order]
        self._owners = owners[self._order]
        self.sizes = self._ends - self._begins
        """Shingles of each document; 0 where the text is shorter than one."""

    def __len__(self) -> int:
        return len(self._order)

    def shingles(self, document: int) -> NDArray[np.uint64]:
        """The sorted, distinct shingle hashes of a document."""
        return self._flat[self._owners[document]][self._begins[document] : self._ends[document]]

    def gather(self, documents: NDArray[np.int32]) -> NDArray[np.uint64]:
        """The shingles of several documents, one after the other."""
        flat = self._flat
        places = zip(
            self._owners[documents].tolist(),
            self._begins[documents].tolist(),
            self._ends[documents].tolist(),
            strict=True,
        )
        parts: list[NDArray[np.uint64]] = [flat[owner][begin:end] for owner, begin, end in places]
        return np.concatenate(parts)

    def band(self, index: int) -> NDArray[np.uint64]:
        """The key of every document in one band."""
        parts: list[NDArray[np.uint64]] = [
            _flat_bands(piece, self.bands)[:, index] for piece in self._pieces
        ]
        return np.concatenate([*parts, np.empty(0, np.uint64)])[self._order]


def _ordered_by(policy: Dedup) -> pa.Schema:
    fields: list[Any] = [schema(policy).field(index) for index in range(4)]
    return pa.schema(fields)


def _pieces(table: pa.Table | pa.RecordBatch, policy: Dedup) -> list[pa.RecordBatch]:
    expected = schema(policy)
    if not table.schema.equals(expected, check_metadata=True):
        raise StepError(
            f"A table made under {table.schema.metadata!r} cannot be reduced under "
            f"{expected.metadata!r}: signatures would not be comparable. Make all shards again "
            "with one policy."
        )
    return table.to_batches() if isinstance(table, pa.Table) else [table]


def _shingle_places(
    pieces: list[pa.RecordBatch],
) -> tuple[list[NDArray[np.uint64]], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Views of the values of each piece; per document its first, its end, and its piece."""
    flat: list[NDArray[np.uint64]] = []
    begins, ends, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for number, piece in enumerate(pieces):
        column: Any = piece.column("shingles")
        offsets: NDArray[np.int64] = column.offsets.to_numpy()
        flat.append(column.values.to_numpy())
        begins.append(offsets[:-1])
        ends.append(offsets[1:])
        owners.append(np.full(len(column), number, np.int32))
    return flat, np.concatenate(begins), np.concatenate(ends), np.concatenate(owners)


def _flat_bands(piece: pa.RecordBatch, bands: int) -> NDArray[np.uint64]:
    column: Any = piece.column("bands")
    return column.flatten().to_numpy().reshape(-1, bands)


def _whole(column: Any) -> Any:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _refuse_repeated(ids: Any) -> None:
    if pc.count_distinct(ids).as_py() != len(ids):
        counts: Any = pc.value_counts(ids)
        worst = counts.take(
            pc.sort_indices(counts.field("counts"), [("", "descending")]).slice(0, 1)
        )
        example = worst[0].as_py()
        raise StepError(
            f"Id {example['values']!r} is on {example['counts']} documents, so what is kept could "
            "not be told from what is removed. Make ids unique before deduplication."
        )
