"""One tool over one corpus, in a process of its own: see `bench_dedup.py`.

Called as `python dedup_peers.py TOOL CORPUS.json RESULT.json`, by the peers' interpreter for a
peer. What is timed is texts in memory to pairs (or clusters, or flags, where a tool has no pairs);
reading them, imports and a warm-up on the first texts are outside, and counted for the whole
process by who starts it. Each peer gets the words that our rules make of a text, and once more the
text as it comes, with words cut at `\\w+` or as the peer cuts them: fewer, cheaper, but not equal.
"""

import importlib
import json
import os
import pickle
import re
import struct
import sys
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.bench.measured import measured

THRESHOLD = 0.8
WIDTH = 5

type Pairs = set[tuple[int, int]]
"""Numbers of two texts, the smaller first."""

type Words = Callable[[str], list[str]]

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_CHEAP_WORD = re.compile(r"\w+")


def same_words(text: str) -> list[str]:
    """The words of a text by the rules that ours follows, as fast as Python has them."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _any_word().findall(_invisible().sub("", folded))


def cheap_words(text: str) -> list[str]:
    """The words of a text as most scripts cut them."""
    return _CHEAP_WORD.findall(text.lower())


@cache
def _any_word() -> Any:
    alone = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    pattern = rf"[{alone}--\p{{N}}]|[\p{{L}}\p{{M}}\p{{N}}--[{alone}--\p{{N}}]]+"
    regex = importlib.import_module("regex")
    return regex.compile(pattern, regex.V1)


@cache
def _invisible() -> Any:
    return importlib.import_module("regex").compile(r"\p{Cf}+")


def shingles(words: list[str]) -> list[str]:
    """Word 5-grams; a shorter text is one shingle, so that it is compared at all."""
    if len(words) < WIDTH:
        return [" ".join(words)]
    return list(map(" ".join, zip(*(words[step:] for step in range(WIDTH)), strict=False)))


def rensa_pairs(texts: list[str], bands: int, rows: int, words: Words) -> Pairs:
    """Signatures and LSH of rensa, pairs by its `query_all`."""
    rensa = importlib.import_module("rensa")
    hashes = bands * rows
    signatures = rensa.RMinHash.from_token_sets(_sets(texts, words), hashes, 1)
    index = rensa.RMinHashLSH(THRESHOLD, hashes, bands)
    index.insert_many(signatures)
    return _from_queries(index.query_all(signatures))


def rensa_flags(texts: list[str], bands: int, rows: int, words: Words) -> None:
    """Its fastest interface, which tells only whether a text shares a band with another."""
    rensa = importlib.import_module("rensa")
    hashes = bands * rows
    matrix = rensa.RMinHash.digest_matrix_from_token_sets(_sets(texts, words), hashes, 1)
    rensa.RMinHashLSH(THRESHOLD, hashes, bands).query_duplicate_flags_matrix_one_shot(matrix)


def gaoya_pairs(texts: list[str], bands: int, rows: int, words: Words | None) -> Pairs:
    """Everything inside gaoya but our words; its index filters by estimated similarity."""
    if words is not None:
        texts = [" ".join(words(text)) for text in texts]
    index = importlib.import_module("gaoya.minhash").MinHashStringIndex(
        hash_size=32,
        num_bands=bands,
        band_size=rows,
        jaccard_threshold=THRESHOLD,
        analyzer="word",
        lowercase=words is None,
        ngram_range=(5, 5),
        id_container="vec",
    )
    index.par_bulk_insert_docs(list(range(len(texts))), texts)
    return _from_queries(index.par_bulk_query(texts))


def datasketch_pairs(texts: list[str], bands: int, rows: int, words: Words) -> Pairs:
    """Bulk signatures with a fast hash, and its dictionary LSH."""
    datasketch = importlib.import_module("datasketch")
    digest = importlib.import_module("xxhash").xxh32_intdigest
    sets = ([shingle.encode() for shingle in found] for found in _sets(texts, words))
    signatures = datasketch.MinHash.bulk(sets, num_perm=bands * rows, hashfunc=digest)
    index = datasketch.MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    with index.insertion_session() as session:
        for number, signature in enumerate(signatures):
            session.insert(number, signature, check_duplication=False)
    return _from_queries(map(index.query, signatures))


def _sets(texts: list[str], words: Words) -> Iterable[list[str]]:
    return (shingles(words(text)) for text in texts)


def datatrove_clusters(texts: list[str], bands: int, rows: int) -> Pairs:
    """Its three stages, one after the other in this process; clusters as stars."""
    minhash = importlib.import_module("datatrove.pipeline.dedup.minhash")
    document = importlib.import_module("datatrove.data").Document
    config = minhash.MinhashConfig(n_grams=WIDTH, num_buckets=bands, hashes_per_bucket=rows)
    with tempfile.TemporaryDirectory() as folder:
        one, two, three = (f"{folder}/{stage}" for stage in ("signatures", "buckets", "clusters"))
        documents = (document(text=text, id=str(at)) for at, text in enumerate(texts))
        minhash.MinhashDedupSignature(one, config, language="en").run(documents)
        buckets = minhash.MinhashDedupBuckets(one, two, config=config)
        for bucket in range(bands):
            buckets.run(None, bucket, bands)
        minhash.MinhashDedupCluster(two, three, config=config, save_cluster_id=True).run(None)
        found = Path(three, "000000.clusters")
        clusters: dict[int, list[int]] = defaultdict(list)
        for number, cluster in struct.iter_unpack(
            "<2I", found.read_bytes() if found.exists() else b""
        ):
            clusters[cluster].append(number)
    return {(min(one), other) for one in clusters.values() for other in one if other != min(one)}


def text_dedup_clusters(texts: list[str]) -> Pairs:
    """The configuration of its README, at our threshold, pairs checked by it; clusters as stars."""
    load = importlib.import_module("text_dedup.config.base").load_config_from_toml
    main = importlib.import_module("text_dedup.minhash").main
    pa = importlib.import_module("pyarrow")
    pq = importlib.import_module("pyarrow.parquet")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"text": texts}), f"{folder}/texts.parquet")
        config = Path(folder, "config.toml")
        config.write_text(_TEXT_DEDUP.replace("FOLDER", folder), encoding="utf-8")
        main(load(config))
        clusters: dict[int, int] = pickle.loads(Path(folder, "out/clusters.pickle").read_bytes())  # noqa: S301
    return {(min(pair), max(pair)) for pair in clusters.items() if pair[0] != pair[1]}


_TEXT_DEDUP = f"""
[input]
input_type = "local_files"
file_type = "parquet"
[input.read_arguments]
path = "parquet"
data_files = "FOLDER/texts.parquet"
cache_dir = "FOLDER/cache"
split = "train"
[algorithm]
algorithm_name = "minhash"
text_column = "text"
seed = 42
batch_size = 10000
num_perm = 240
threshold = {THRESHOLD}
false_positive_weight = 0.5
false_negative_weight = 0.5
hash_bits = 64
ngram_size = 5
check_false_positive = true
[output]
output_dir = "FOLDER/out"
clean_cache = false
save_clusters = true
[debug]
enable_profiling = false
"""


def factory_pairs(texts: list[str], rows: int = 5) -> Pairs:
    """Ours: both phases, every pair verified and written out."""
    pa, dedup, policy = _factory(rows)
    tables = [dedup.local(batch, policy) for batch in _batches(pa, texts)]
    found: Pairs = set()
    for batch in dedup.pairs(tables, policy):
        found |= _numbers(pa, batch.column("first"), batch.column("second"))
    return found


def factory_outcome(texts: list[str], rows: int = 5) -> Pairs:
    """Ours as the factory runs it: each removed document with the kept one it duplicates."""
    pa, dedup, policy = _factory(rows)
    tables = [dedup.local(batch, policy) for batch in _batches(pa, texts)]
    removed = dedup.reduce(tables, policy).removed
    return _numbers(pa, removed.column("id"), removed.column("kept"))


def _numbers(pa: Any, ids: Any, others: Any) -> Pairs:
    one, other = (column.cast(pa.int64()).to_numpy().copy() for column in (ids, others))
    swapped = one > other
    one[swapped], other[swapped] = other[swapped], one[swapped]
    return set(zip(one.tolist(), other.tolist(), strict=True))


def _factory(rows: int) -> tuple[Any, Any, Any]:
    dedup = importlib.import_module("factory.data.dedup")
    return importlib.import_module("pyarrow"), dedup, dedup.Dedup(rows_per_band=rows)


def _batches(pa: Any, texts: list[str], size: int = 5_000) -> Iterable[Any]:
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        yield pa.RecordBatch.from_pydict(
            {
                "id": [str(start + number) for number in range(len(part))],
                "text": part,
                "priority": pa.array([0] * len(part), pa.int64()),
                "tokens": pa.array([len(text) for text in part], pa.int64()),
            }
        )


def _from_queries(answers: Iterable[Iterable[int]]) -> Pairs:
    pairs: Pairs = set()
    for number, found in enumerate(answers):
        pairs.update((other, number) for other in found if other < number)
    return pairs


_SAME: dict[str, Callable[..., Pairs | None]] = {
    "rensa": rensa_pairs,
    "rensa, flags": rensa_flags,
    "gaoya": gaoya_pairs,
    "datasketch": datasketch_pairs,
}
OWN = ", own words"
TOOLS: dict[str, Callable[[list[str]], Pairs | None]] = {
    "factory": factory_pairs,
    "factory, removal": factory_outcome,
    **{
        f"{name} {bands}x{rows}": partial(function, bands=bands, rows=rows, words=same_words)
        for name, function in _SAME.items()
        for bands, rows in ((16, 8), (16, 5))
        if (name, rows) != ("datasketch", 5)
    },
    **{
        f"{name} {bands}x{rows}{OWN}": partial(
            function, bands=bands, rows=rows, words=None if name == "gaoya" else cheap_words
        )
        for name, function in _SAME.items()
        for bands, rows in ((16, 8), (16, 5))
        if name != "datasketch"
    },
    f"text-dedup{OWN}": text_dedup_clusters,
    f"datatrove 14x8{OWN}": partial(datatrove_clusters, bands=14, rows=8),
}


def main(tool: str, corpus: str, result: str) -> None:
    """Measure one tool and write what it found and what it took."""
    texts: list[str] = json.loads(Path(corpus).read_text(encoding="utf-8"))
    function = TOOLS[tool]
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        sys.stdout = nowhere
        function(texts[:200])
        pairs, took = measured(lambda: function(texts))
    sys.stdout = sys.__stdout__
    found = {"pairs": sorted(pairs) if pairs is not None else None}
    Path(result).write_text(json.dumps(took | found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
