"""The reduce: every shard's table to what is kept and what is removed, by what, how similar.

Exact duplicates go first (equal content hash). Then, in the total order, a document is removed
only if it matches one that is kept: verified against it directly, never through a third (chaining
removes documents that resemble nothing that stays). One pass, the same outcome for any split.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factory.data.dedup import bulk
from factory.data.dedup.arrow import arrow
from factory.data.dedup.candidates import Candidates, candidate_pairs
from factory.data.dedup.order import Collection
from factory.data.dedup.verify import Verifier
from factory.data.dedup_policy import Dedup

REMOVED = pa.schema(
    [
        pa.field("id", pa.large_string(), nullable=False),
        pa.field("kept", pa.large_string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("similarity", pa.float64(), nullable=False),
    ]
)
"""One row per removed document: the kept one it duplicates, `exact` or `near`, their similarity."""

PAIRS = pa.schema(
    [
        pa.field("first", pa.large_string(), nullable=False),
        pa.field("second", pa.large_string(), nullable=False),
        pa.field("similarity", pa.float64(), nullable=False),
    ]
)
"""One row per verified pair, the one that would be kept first."""


@dataclass(frozen=True)
class Outcome:
    """Ids of what is kept, sorted, and the table of what is removed, sorted by id."""

    kept: pa.Array
    removed: pa.Table


def reduce(tables: Iterable[pa.Table | pa.RecordBatch], policy: Dedup) -> Outcome:
    """Decide over all shards at once.

    Raises:
        StepError: an id occurs twice, or tables were made under another policy.
    """
    collection = Collection(tables, policy)
    first = _first_of_equal(collection.contents)
    keeper, similarity = _near(collection, first, policy)
    # A copy of a document that goes matches what that one matches: their shingles are equal.
    keeper, similarity = keeper[first], similarity[first]
    near = keeper >= 0
    exact = ~near & (first != np.arange(len(first)))
    keeper[exact] = first[exact]
    similarity[exact] = 1.0
    gone = near | exact
    removed = pa.Table.from_arrays(
        [
            collection.ids.filter(arrow(gone)),
            collection.ids.take(arrow(keeper[gone])),
            pa.array(np.where(near[gone], "near", "exact"), pa.string()),
            arrow(similarity[gone]),
        ],
        schema=REMOVED,
    )
    kept = collection.ids.filter(arrow(~gone))
    return Outcome(kept.take(pc.sort_indices(kept)), removed.sort_by("id"))


def pairs(tables: Iterable[pa.Table | pa.RecordBatch], policy: Dedup) -> Iterator[pa.RecordBatch]:
    """Every verified pair at or above the threshold, of texts long enough to have a shingle.

    For reports and measurements; `reduce` needs far fewer. Streamed: memory is that of one batch of
    candidates, see `candidate_pairs`.
    """
    collection = Collection(tables, policy)
    for batch in candidate_pairs(collection, np.flatnonzero(collection.sizes)):
        first, second, similarity = bulk.confirmed(collection, batch, policy.threshold)
        if len(first):
            yield pa.RecordBatch.from_arrays(
                [
                    collection.ids.take(arrow(first)),
                    collection.ids.take(arrow(second)),
                    arrow(similarity),
                ],
                schema=PAIRS,
            )


def _near(
    collection: Collection, first: NDArray[np.int64], policy: Dedup
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each document the most similar kept one, the earliest of equals; -1 for none."""
    keeper = np.full(len(collection), -1, dtype=np.int64)
    best = np.zeros(len(collection))
    # Texts with equal content are settled; ones shorter than a shingle are compared whole only.
    distinct = first == np.arange(len(first))
    index = Candidates(collection, np.flatnonzero(distinct & (collection.sizes > 0)))
    verifier = Verifier(collection, policy.threshold)
    for document in index.documents:
        close, similarity = verifier.confirmed(document, index.earlier(document))
        if len(close):
            best[document] = similarity.max()
            keeper[document] = close[similarity == best[document]].min()
        else:
            index.add(document)
    return keeper, best


def _first_of_equal(contents: Any) -> NDArray[np.int64]:
    """For each document the first one with the same content."""
    codes = contents.dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return first.astype(np.int64)[codes]
