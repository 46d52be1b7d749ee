"""The local phase: a batch of documents to what the reduce needs of them, text left behind.

A pure function of its batch, so it runs shard by shard in process or as a Ray Data map, in any
split: rows do not depend on their neighbours. The reduce is in `greedy.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factory.data.dedup import minhash, normalize, words
from factory.data.dedup.arrow import arrow
from factory.data.dedup.contents import CONTENT_BYTES, LANES, contents, in_scope
from factory.data.dedup.shingles import scoped, shingles
from factory.data.dedup_policy import Dedup
from factory.errors import StepError

CODES_PER_GROUP = 1 << 16
"""Documents are taken together up to about this many characters, which a core's cache holds; a
longer one goes alone."""

SCOPE = "scope"
_FINGERPRINT = b"dedup"


def schema(policy: Dedup) -> pa.Schema:
    """What the local phase returns."""
    return pa.schema(
        [
            pa.field("id", pa.large_string(), nullable=False),
            pa.field("priority", pa.int64(), nullable=False),
            pa.field("tokens", pa.int64(), nullable=False),
            pa.field("content", pa.binary(CONTENT_BYTES), nullable=False),
            pa.field("bands", pa.list_(pa.uint64(), policy.bands), nullable=False),
            pa.field("shingles", pa.large_list(pa.uint64()), nullable=False),
        ],
        metadata={_FINGERPRINT: policy.fingerprint.encode()},
    )


def local(batch: pa.RecordBatch, policy: Dedup) -> pa.RecordBatch:
    """Content hash, band keys and shingles of each row of `id, text, priority, tokens`.

    With a column `scope`, texts of different scopes have nothing in common, whatever they say.
    Scopes are equal if their words are; an empty one is the scope of batches without the column.

    Raises:
        StepError: a column is missing or has a null, so a row could not be ordered or compared.
    """
    _refuse_gaps(batch)
    texts = cast("list[str]", batch.column("text").to_pylist())
    scopes = [""] * len(texts)
    if SCOPE in batch.schema.names:
        scopes = cast("list[str]", batch.column(SCOPE).to_pylist())
    return pa.RecordBatch.from_arrays(
        [
            batch.column("id").cast(pa.large_string()),
            batch.column("priority").cast(pa.int64()),
            batch.column("tokens").cast(pa.int64()),
            *_described(texts, _marks(scopes), policy),
        ],
        schema=schema(policy),
    )


def _refuse_gaps(batch: pa.RecordBatch) -> None:
    scope = {SCOPE} & set(batch.schema.names)
    for name in ("id", "text", "priority", "tokens", *scope):
        if name not in batch.schema.names or batch.column(name).null_count:
            raise StepError(
                f"Column {name!r} is missing or has a null among {batch.num_rows} documents; "
                "deduplication orders and compares by id, text, priority and tokens. Fill it in."
            )


def _described(texts: Sequence[str], marks: NDArray[np.uint64], policy: Dedup) -> list[Any]:
    # A group with one character beyond ASCII takes four bytes for each, so they go apart.
    order = np.argsort([not text.isascii() for text in texts], kind="stable")
    hashes: list[NDArray[np.uint64]] = [np.empty((0, LANES), np.uint64)]
    sets: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    lengths: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    done = 0
    numbers: list[int] = order.tolist()
    for group in _groups(normalize.fold(texts[number]) for number in numbers):
        tokens, ends = _tokens(group)
        own = marks[order[done : done + len(group)]]
        hashes.append(in_scope(contents(group, tokens, ends), own))
        found, offsets = shingles(tokens, ends, policy.shingle_tokens)
        sets.append(scoped(found, offsets, own[:, 0]) if own.any() else found)
        lengths.append(np.diff(offsets))
        done += len(group)
    flat, offsets = np.concatenate(sets), np.cumsum(np.concatenate(lengths))
    keys = minhash.keys(flat, offsets, policy)
    columns: list[Any] = [
        _binary(np.concatenate(hashes)),
        pa.FixedSizeListArray.from_arrays(arrow(keys.reshape(-1)), policy.bands),
        pa.LargeListArray.from_arrays(arrow(offsets), arrow(flat)),
    ]
    if (np.diff(order) > 0).all():
        return columns
    return [column.take(arrow(np.argsort(order))) for column in columns]


def _binary(values: NDArray[np.uint64]) -> Any:
    buffers = [None, pa.py_buffer(values)]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(CONTENT_BYTES), len(values), buffers)


def _marks(scopes: Sequence[str]) -> NDArray[np.uint64]:
    """A hash of the words of each scope; zeros for an empty one."""
    marks = np.zeros((len(scopes), LANES), dtype=np.uint64)
    if not any(scopes):
        return marks
    done = 0
    for group in _groups(map(normalize.fold, scopes)):
        worded = np.array([bool(scope) for scope in group])
        found = contents(group, *_tokens(group))
        marks[done : done + len(group)][worded] = found[worded]
        done += len(group)
    return marks


def _tokens(folded: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of the words of all documents, and where each document's end."""
    points, kinds, ends = normalize.codes(folded)
    tokens, starts = words.hashes(points, kinds)
    return tokens, np.searchsorted(starts, ends)


def _groups(folded: Iterable[str]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for text in folded:
        if group and size + len(text) > CODES_PER_GROUP:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text) + 1
    if group:
        yield group
