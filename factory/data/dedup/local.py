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
from factory.data.dedup.policy import Policy
from factory.data.dedup.shingles import GROUP, shingles
from factory.errors import StepError

CODES_PER_GROUP = 1 << 20
"""Documents are taken together up to about this many characters; a longer one goes alone."""

CONTENT_BYTES = 16
_FINGERPRINT = b"dedup"


def schema(policy: Policy) -> pa.Schema:
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


def local(batch: pa.RecordBatch, policy: Policy) -> pa.RecordBatch:
    """Content hash, band keys and shingles of each row of `id, text, priority, tokens`.

    Raises:
        StepError: a column is missing or has a null, so a row could not be ordered or compared.
    """
    _refuse_gaps(batch)
    return pa.RecordBatch.from_arrays(
        [
            batch.column("id").cast(pa.large_string()),
            batch.column("priority").cast(pa.int64()),
            batch.column("tokens").cast(pa.int64()),
            *_described(cast("list[str]", batch.column("text").to_pylist()), policy),
        ],
        schema=schema(policy),
    )


def _refuse_gaps(batch: pa.RecordBatch) -> None:
    for name in ("id", "text", "priority", "tokens"):
        if name not in batch.schema.names or batch.column(name).null_count:
            raise StepError(
                f"Column {name!r} is missing or has a null among {batch.num_rows} documents; "
                "deduplication orders and compares by id, text, priority and tokens. Fill it in."
            )


def _described(texts: Sequence[str], policy: Policy) -> list[Any]:
    contents: list[bytes] = []
    keys: list[NDArray[np.uint64]] = []
    sets: list[NDArray[np.uint64]] = []
    lengths: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    for group in _groups(map(normalize.fold, texts)):
        points, kinds, ends = normalize.codes(group)
        tokens, starts = words.hashes(points, kinds)
        token_ends = np.searchsorted(starts, ends)
        contents += _contents(group, tokens, token_ends)
        found, offsets = shingles(tokens, token_ends, policy.shingle_tokens)
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
