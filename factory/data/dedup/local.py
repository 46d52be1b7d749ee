"""The local phase: a batch of documents to what the reduce needs of them, text left behind.

A pure function of its batch, so it runs shard by shard in process or as a Ray Data map, in any
split: rows do not depend on their neighbours. The reduce is in `greedy.py`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factory.data.dedup import minhash, normalize, words
from factory.data.dedup.arrow import arrow
from factory.data.dedup.shingles import GROUP, scoped, shingles
from factory.data.dedup_policy import Dedup
from factory.errors import StepError

CODES_PER_GROUP = 1 << 20
"""Documents are taken together up to about this many characters; a longer one goes alone."""

CONTENT_BYTES = 16
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


def _described(texts: Sequence[str], marks: Sequence[bytes], policy: Dedup) -> list[Any]:
    contents: list[bytes] = []
    keys: list[NDArray[np.uint64]] = []
    sets: list[NDArray[np.uint64]] = []
    lengths: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    for group in _groups(map(normalize.fold, texts)):
        tokens, ends = _tokens(group)
        own = marks[len(contents) : len(contents) + len(group)]
        contents += map(_in_scope, _contents(group, tokens, ends), own)
        found, offsets = shingles(tokens, ends, policy.shingle_tokens)
        if any(own):
            found = scoped(found, offsets, [int.from_bytes(mark[:8]) for mark in own])
        rows = minhash.signatures(found, offsets, policy.hashes, policy.seed)
        keys.append(minhash.band_keys(rows, policy))
        sets.append(found)
        lengths.append(np.diff(offsets))
    flat_keys = np.concatenate([*keys, np.empty((0, policy.bands), np.uint64)])
    return [
        pa.array(contents, pa.binary(CONTENT_BYTES)),
        pa.FixedSizeListArray.from_arrays(arrow(flat_keys.reshape(-1)), policy.bands),
        pa.LargeListArray.from_arrays(
            arrow(np.cumsum(np.concatenate(lengths))),
            arrow(np.concatenate([*sets, np.empty(0, np.uint64)])),
        ),
    ]


def _marks(scopes: Sequence[str]) -> list[bytes]:
    """A hash of the words of each scope; nothing for an empty one."""
    marks: list[bytes] = []
    if not any(scopes):
        return [b""] * len(scopes)
    for group in _groups(map(normalize.fold, scopes)):
        found = _contents(group, *_tokens(group))
        marks += [mark if scope else b"" for mark, scope in zip(found, group, strict=True)]
    return marks


def _in_scope(content: bytes, mark: bytes) -> bytes:
    if not mark:
        return content
    return hashlib.blake2b(content + mark, digest_size=CONTENT_BYTES, person=b"in scope").digest()


def _tokens(folded: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of the words of all documents, and where each document's end."""
    points, kinds, ends = normalize.codes(folded)
    tokens, starts = words.hashes(points, kinds)
    return tokens, np.searchsorted(starts, ends)


def _groups(folded: Iterable[str]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for text in folded:
        if group and (len(group) == GROUP or size + len(text) > CODES_PER_GROUP):
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def _contents(
    folded: Sequence[str], tokens: NDArray[np.uint64], ends: NDArray[np.int64]
) -> list[bytes]:
    """Hash of the tokens of each document; of the text itself where it has none (symbols only)."""
    view = memoryview(tokens.view(np.uint8))
    contents: list[bytes] = []
    start = 0
    for text, end in zip(folded, ends.tolist(), strict=True):
        if end > start:
            digest = hashlib.blake2b(view[start * 8 : end * 8], digest_size=CONTENT_BYTES)
        else:
            digest = hashlib.blake2b(
                " ".join(text.split()).encode(), digest_size=CONTENT_BYTES, person=b"no words"
            )
        contents.append(digest.digest())
        start = end
    return contents
