"""A block of form letters makes pairs by the hundred thousand; memory must not grow with them."""

import random
import tracemalloc

import pyarrow as pa
import pytest

from factory.data.dedup import Dedup, local, pairs, reduce

LETTERS = 900
MIB = 2**20


def _letters() -> pa.RecordBatch:
    """200 words with six holes: any two share at least 166 of 226 shingles, J = 0.735."""
    rng = random.Random(2)
    words = [f"word{number}" for number in range(200)]
    texts: list[str] = []
    for _ in range(LETTERS):
        for hole in range(6):
            words[20 + hole * 30] = f"filling{hole}x{rng.randrange(200)}"
        texts.append(" ".join(words))
    return pa.RecordBatch.from_pydict(
        {
            "id": [str(number) for number in range(LETTERS)],
            "text": texts,
            "priority": pa.array([0] * LETTERS, pa.int64()),
            "tokens": pa.array([200] * LETTERS, pa.int64()),
        }
    )


@pytest.mark.slow
def test_memory_does_not_grow_with_pairs():
    policy = Dedup(threshold=0.7)
    table = local(_letters(), policy)
    tracemalloc.start()
    try:
        found = sum(batch.num_rows for batch in pairs([table], policy))
        _, pairs_peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        outcome = reduce([table], policy)
        _, reduce_peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found >= 300_000
    assert outcome.kept.to_pylist() == outcome.kept.to_pylist()[:1]
    assert pairs_peak < 20 * MIB
    assert reduce_peak < 8 * MIB
