"""Deduplication: exact by content, near by verified MinHash, the same outcome for any split.

Two phases, both pure functions over Arrow. `local(batch, policy)` turns each batch of
`id, text, priority, tokens` into signatures and shingles, shard by shard, anywhere; with a column
`scope`, only texts of equal scope are ever duplicates. `reduce(tables, policy)` decides once over
all of them: what is kept, what is removed, by what and how similar.

Words of the text: `normalize.py`, `characters.py`, `words.py`. Sets and signatures: `shingles.py`,
`minhash.py`. Decision: `order.py`, `candidates.py`, `verify.py`, `greedy.py`. What can be set is in
`dedup_policy`, beside this package.
"""

from factory.data.dedup.greedy import PAIRS, REMOVED, Outcome, pairs, reduce
from factory.data.dedup.local import local, schema
from factory.data.dedup_policy import Dedup

__all__ = ["PAIRS", "REMOVED", "Dedup", "Outcome", "local", "pairs", "reduce", "schema"]
