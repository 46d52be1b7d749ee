"""One tool over one corpus, in a process of its own: see `bench_dedup.py`.

Called as `python dedup_peers.py TOOL CORPUS.json RESULT.json`, by the peers' interpreter for a
peer. What is timed is texts in memory to pairs (or clusters, or flags, where a tool has no pairs);
reading them, imports and a warm-up on the first texts are outside. CPU time is that of all threads
and children; memory is the peak above what was in use when the clock started.
"""

import importlib
import json
import os
import pickle
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

WORD = re.compile(r"\w+")
THRESHOLD = 0.8

type Pairs = set[tuple[int, int]]
"""Numbers of two texts, the smaller first."""


def shingles(text: str) -> list[str]:
    """Word 5-grams; a shorter text is one shingle, so that it is compared at all."""
    words = WORD.findall(text.lower())
    if len(words) < 5:
        return [" ".join(words)]
    return list(map(" ".join, zip(*(words[step:] for step in range(5)), strict=False)))


def rensa_pairs(texts: list[str], bands: int, rows: int) -> Pairs:
    """Signatures and LSH of rensa, pairs by its `query_all`."""
    rensa = importlib.import_module("rensa")
    hashes = bands * rows
    signatures = rensa.RMinHash.from_token_sets(map(shingles, texts), hashes, 1)
    index = rensa.RMinHashLSH(THRESHOLD, hashes, bands)
    index.insert_many(signatures)
    return _from_queries(index.query_all(signatures))


def rensa_flags(texts: list[str], bands: int, rows: int) -> None:
    """Its fastest interface, which tells only whether a text shares a band with another."""
    rensa = importlib.import_module("rensa")
    hashes = bands * rows
    matrix = rensa.RMinHash.digest_matrix_from_token_sets(map(shingles, texts), hashes, 1)
    rensa.RMinHashLSH(THRESHOLD, hashes, bands).query_duplicate_flags_matrix_one_shot(matrix)


def gaoya_pairs(texts: list[str], bands: int, rows: int) -> Pairs:
    """Everything inside gaoya; its index filters by estimated similarity."""
    index = importlib.import_module("gaoya.minhash").MinHashStringIndex(
        hash_size=32,
        num_bands=bands,
        band_size=rows,
        jaccard_threshold=THRESHOLD,
        analyzer="word",
        lowercase=True,
        ngram_range=(5, 5),
        id_container="vec",
    )
    index.par_bulk_insert_docs(list(range(len(texts))), texts)
    return _from_queries(index.par_bulk_query(texts))


def datasketch_pairs(texts: list[str], bands: int, rows: int) -> Pairs:
    """Bulk signatures with a fast hash, and its dictionary LSH."""
    datasketch = importlib.import_module("datasketch")
    digest = importlib.import_module("xxhash").xxh32_intdigest
    sets = ([shingle.encode() for shingle in shingles(text)] for text in texts)
    signatures = datasketch.MinHash.bulk(sets, num_perm=bands * rows, hashfunc=digest)
    index = datasketch.MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    with index.insertion_session() as session:
        for number, signature in enumerate(signatures):
            session.insert(number, signature, check_duplication=False)
    return _from_queries(map(index.query, signatures))


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


TOOLS: dict[str, Callable[[list[str]], Pairs | None]] = {
    "factory": factory_pairs,
    "factory, removal": factory_outcome,
    "text-dedup": text_dedup_clusters,
} | {
    f"{name} {bands}x{rows}": partial(function, bands=bands, rows=rows)
    for name, function in {
        "rensa": rensa_pairs,
        "rensa, flags": rensa_flags,
        "gaoya": gaoya_pairs,
        "datasketch": datasketch_pairs,
    }.items()
    for bands, rows in ((16, 8), (16, 5))
}


def main(tool: str, corpus: str, result: str) -> None:
    """Measure one tool and write what it found and what it took."""
    texts: list[str] = json.loads(Path(corpus).read_text(encoding="utf-8"))
    function = TOOLS[tool]
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        sys.stdout = nowhere
        function(texts[:200])
        _reset_peak()
        before, wall, memory = _cpu_seconds(), time.perf_counter(), _resident_mib()
        pairs = function(texts)
    sys.stdout = sys.__stdout__
    measured = {
        "cpu_seconds": _cpu_seconds() - before,
        "wall_seconds": time.perf_counter() - wall,
        "extra_mib": _peak_mib() - memory,
        "pairs": sorted(pairs) if pairs is not None else None,
    }
    Path(result).write_text(json.dumps(measured), encoding="utf-8")


def _cpu_seconds() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in _WHO)


_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _status(field: str) -> float:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(rf"{field}:\s+(\d+)", text)[1]) / 1024  # pyright: ignore[reportOptionalSubscript]


def _peak_mib() -> float:
    return _status("VmHWM")


def _resident_mib() -> float:
    return _status("VmRSS")


def _reset_peak() -> None:
    """Linux forgets the highest memory use so far when told so."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
