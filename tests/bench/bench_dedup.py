"""Deduplication beside rensa, gaoya, datasketch, text-dedup and datatrove, on three corpora.

Corpora: `corpora.py`; exact truth: `dedup_truth.py`; what each tool is asked: `dedup_peers.py`.
Peers have an environment of their own, made from `peers.lock`.
"""

import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factory.data.dedup import Dedup, local, minhash, normalize, reduce, words
from factory.data.dedup.candidates import SLOTS_AT_ONCE
from factory.data.dedup.shingles import shingles
from tests.bench import corpora, dedup_truth
from tests.bench.dedup_peers import OWN, THRESHOLD, TOOLS
from tests.bench.measured import CHECKOUT, in_process

HERE = Path(__file__).resolve().parent
ENVIRONMENT = CHECKOUT / ".tools" / "peers"
ROUNDS = 3
SLOW = ("datasketch", "text-dedup", "datatrove")
TIMEOUT_SECONDS = 900
CORPORA: dict[str, Callable[[], list[str]]] = {
    "medical": corpora.medical,
    "templated": corpora.templated,
    "scripts": corpora.scripts,
}


def run() -> str:
    """Measure every tool on every corpus; returns the section."""
    return "\n\n".join([_HEAD, *map(section, CORPORA)])


def section(name: str) -> str:
    """Measure every tool on one corpus."""
    texts = CORPORA[name]()
    codes, similarities = dedup_truth.pairs(texts, 0.7)
    truth = codes[similarities >= THRESHOLD]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus.json")
        corpus.write_text(json.dumps(texts), encoding="utf-8")
        measured = _measure(corpus, environment())
    parts = [
        f"### {name}: {len(texts):,} documents, {sum(map(len, texts)) / 1e6:.1f} MB, "
        f"{len(codes):,} pairs at J >= 0.7, {len(truth):,} at J >= {THRESHOLD}",
        _table(measured, texts, truth),
        _ratios(measured),
        _decision(texts, truth),
        _costs(texts),
    ]
    return "\n\n".join(parts)


_HEAD = f"""## Deduplication

Texts in memory to every pair at J >= {THRESHOLD} on word 5-grams. Precision and recall are
against exact truth from a sparse matrix product over string shingles. Only ours and text-dedup
verify what they find. "removal" is what the factory runs: it looks only for pairs with kept
documents. Peers get the words that our rules make of a text (NFKC, case folding, a character of
Han, kana, Thai each a word), cut by the `regex` package, and "own words" where they get the text
as it comes: cut at `\\w+`, or by the peer itself. rensa's flags name no pair; clusters of
text-dedup and datatrove count as stars. Both MinHash settings are given, 16 bands of 8 and of 5
rows; text-dedup as in its README, datatrove with its defaults. CPU-seconds count threads and
children. "Whole process" adds the interpreter's start, imports, reading the texts and a warm-up
on 200 of them, for everyone alike. Medians of {ROUNDS} rounds in turn, one for the slow tools.
Memory for pairs is that of signatures and shingles and of one batch of candidates, at most
{SLOTS_AT_ONCE:,} or those of one document."""


def environment() -> Path:
    """The peers' interpreter; installs the lock when it changed."""
    lock = HERE / "peers.lock"
    want = hashlib.sha256(lock.read_bytes()).hexdigest()
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / ".matches"
    if not stamp.exists() or stamp.read_text(encoding="ascii") != want:
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, ENVIRONMENT], check=True
        )
        subprocess.run(
            [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", lock], check=True
        )
        stamp.write_text(want, encoding="ascii")
    return python


def _measure(corpus: Path, peers: Path) -> dict[str, list[dict[str, Any]]]:
    measured: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    for turn in range(ROUNDS):
        for tool in TOOLS:
            if turn and tool.startswith(SLOW):
                continue
            python = sys.executable if tool.startswith("factory") else peers
            arguments = [tool, corpus, corpus.with_name("result.json")]
            found = in_process(python, HERE / "dedup_peers.py", arguments, TIMEOUT_SECONDS)
            if found is not None:
                measured[tool].append(found)
    return measured


def _median(results: list[dict[str, Any]], field: str) -> float:
    return statistics.median(result[field] for result in results)


def _table(
    measured: dict[str, list[dict[str, Any]]], texts: Sequence[str], truth: NDArray[np.int64]
) -> str:
    lines = [
        "| tool | docs per CPU-s | whole process | wall s | extra peak MiB | pairs | recall "
        "| precision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for tool, results in measured.items():
        if not results:
            lines.append(f"| {tool} | failed or over {TIMEOUT_SECONDS} s | | | | | | |")
            continue
        cpu, whole, wall, memory = (
            _median(results, field)
            for field in ("cpu_seconds", "process_cpu_seconds", "wall_seconds", "extra_mib")
        )
        quality = _quality(results[-1]["pairs"], len(texts), truth)
        lines.append(
            f"| {tool} | {len(texts) / cpu:,.0f} | {len(texts) / whole:,.0f} | {wall:.2f} "
            f"| {memory:.0f} | {quality} |"
        )
    return "\n".join(lines)


def _ratios(measured: dict[str, list[dict[str, Any]]]) -> str:
    """Ours against the fastest of each kind of peer; the goal is for those with equal words."""
    spent = {tool: _median(found, "cpu_seconds") for tool, found in measured.items() if found}
    ours = spent["factory"]
    peers = {tool: cpu for tool, cpu in spent.items() if not tool.startswith("factory")}
    kinds: dict[str, Callable[[str], bool]] = {
        "pairs from equal words": lambda tool: OWN not in tool and "flags" not in tool,
        "pairs from words of its own": lambda tool: OWN in tool and "flags" not in tool,
        "flags from equal words": lambda tool: OWN not in tool and "flags" in tool,
        "flags from words of its own": lambda tool: OWN in tool and "flags" in tool,
    }
    parts: list[str] = []
    for kind, wanted in kinds.items():
        cpu, tool = min((cpu, tool) for tool, cpu in peers.items() if wanted(tool))
        parts.append(f"{cpu / ours:.2f} ({tool.removesuffix(OWN)}: {kind})")
    return f"Ours to the fastest peer, docs per CPU-second: {'; '.join(parts)}. Goal: at least 1.2."


def _quality(pairs: list[list[int]] | None, count: int, truth: NDArray[np.int64]) -> str:
    if pairs is None:
        return "none | | "
    codes = np.array([first * count + second for first, second in pairs], dtype=np.int64)
    right = int(np.isin(codes, truth).sum())
    return f"{len(codes):,} | {right / len(truth):.4f} | {right / max(len(codes), 1):.4f}"


def _decision(texts: Sequence[str], truth: NDArray[np.int64]) -> str:
    """Chaining, what was missed, and the outcome under other splits and worker counts."""
    policy = Dedup()
    rng = np.random.default_rng(0)
    outcomes: list[tuple[Any, Any]] = []
    for workers in (1, 2, 4):
        parts = np.array_split(rng.permutation(len(texts)), workers * 3)
        shards = [_batch(texts, part.tolist()) for part in parts]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            tables = list(pool.map(local, shards, [policy] * len(shards)))
        outcome = reduce([tables[at] for at in rng.permutation(len(tables))], policy)
        outcomes.append((outcome.kept, outcome.removed))
    same = all(a.equals(c) and b.equals(d) for (a, b), (c, d) in zip(outcomes, outcomes[1:]))  # noqa: B905, RUF007
    kept, removed = outcomes[0]
    keeps = np.zeros(len(texts), dtype=bool)
    keeps[[int(number) for number in kept.to_pylist()]] = True
    first, second = truth // len(texts), truth % len(texts)
    near = np.zeros(len(texts), dtype=bool)
    near[first[keeps[second]]] = near[second[keeps[first]]] = True
    return (
        f"Kept {len(kept):,}, removed {removed.num_rows:,}. Removed without a kept document at "
        f"J >= {THRESHOLD} (chaining): {int((~keeps & ~near).sum())}. Pairs at J >= {THRESHOLD} "
        f"left among the kept: {int((keeps[first] & keeps[second]).sum())}. Same outcome for 1, 2 "
        f"and 4 workers on shards cut and ordered at random: {'yes' if same else 'NO'}."
    )


def _batch(texts: Sequence[str], numbers: Sequence[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "id": [str(number) for number in numbers],
            "text": [texts[number] for number in numbers],
            "priority": pa.array([0] * len(numbers), pa.int64()),
            "tokens": pa.array([len(texts[number]) for number in numbers], pa.int64()),
        }
    )


def _costs(texts: Sequence[str]) -> str:
    """CPU-seconds of each part of the local phase, and of the reduce."""
    policy = Dedup()
    spent = dict.fromkeys(("normalize", "words", "shingles", "signatures", "bands"), 0.0)

    def timed[**P, R](part: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        before = time.process_time()
        value = function(*args, **kwargs)
        spent[part] += time.process_time() - before
        return value

    for start in range(0, len(texts), 64):
        group = texts[start : start + 64]
        folded = timed("normalize", lambda part: [normalize.fold(text) for text in part], group)
        points, kinds, ends = timed("normalize", normalize.codes, folded)
        tokens, starts = timed("words", words.hashes, points, kinds)
        token_ends = np.searchsorted(starts, ends)
        found, offsets = timed("shingles", shingles, tokens, token_ends, policy.shingle_tokens)
        rows = timed("signatures", minhash.signatures, found, offsets, policy.hashes, policy.seed)
        timed("bands", minhash.band_keys, rows, policy)
    tables = [local(_batch(texts, range(len(texts))), policy)]
    before = time.process_time()
    reduce(tables, policy)
    spent["reduce"] = time.process_time() - before
    return (
        "CPU-seconds by part: "
        + ", ".join(f"{key} {value:.2f}" for key, value in spent.items())
        + "."
    )
