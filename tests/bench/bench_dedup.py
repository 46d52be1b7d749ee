"""Deduplication beside rensa, gaoya, datasketch and text-dedup, on three corpora, in one run.

Corpora: `corpora.py`; exact truth: `dedup_truth.py`; what each tool is asked: `dedup_peers.py`.
Peers have an environment of their own, made from `peers.lock`.
"""

import hashlib
import json
import os
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
from factory.data.dedup.shingles import shingles
from tests.bench import corpora, dedup_truth
from tests.bench.dedup_peers import THRESHOLD, TOOLS

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
ENVIRONMENT = CHECKOUT / ".tools" / "peers"
ROUNDS = 3
SLOW = {"datasketch 16x8", "datasketch 16x5", "text-dedup"}
TIMEOUT_SECONDS = 900
CORPORA: dict[str, Callable[[], list[str]]] = {
    "medical": corpora.medical,
    "templated": corpora.templated,
    "scripts": corpora.scripts,
}


def run() -> str:
    """Measure every tool on every corpus; returns the section."""
    peers = _environment()
    parts = [_HEAD]
    for name, make in CORPORA.items():
        texts = make()
        codes, similarities = dedup_truth.pairs(texts, 0.7)
        truth = codes[similarities >= THRESHOLD]
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder, "corpus.json")
            corpus.write_text(json.dumps(texts), encoding="utf-8")
            measured = _measure(corpus, peers)
        parts.append(
            f"### {name}: {len(texts):,} documents, {sum(map(len, texts)) / 1e6:.1f} MB, "
            f"{len(codes):,} pairs at J >= 0.7, {len(truth):,} at J >= {THRESHOLD}\n\n"
            + _table(measured, texts, truth)
        )
        parts.append(_decision(texts, truth))
        if name == "medical":
            parts.append(_costs(texts))
    return "\n\n".join(parts)


_HEAD = f"""## Deduplication

Texts in memory to every pair at J >= {THRESHOLD} on word 5-grams. Precision and recall are against
exact truth from a sparse matrix product over string shingles. "removal" is what the factory runs:
it looks only for pairs with kept documents. rensa's flags name no pair; text-dedup's are clusters,
so its recall is of stars. Peers cut words at `\\\\w+` and do not verify; each ran with 16 bands of
8 and of 5 rows (text-dedup: its README). CPU-seconds count threads and children; the median of
{ROUNDS} interleaved rounds, one for the slow tools."""


def _environment() -> Path:
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
            if turn and tool in SLOW:
                continue
            python = Path(sys.executable) if tool.startswith("factory") else peers
            result = corpus.with_name("result.json")
            result.unlink(missing_ok=True)
            command = [python, HERE / "dedup_peers.py", tool, corpus, result]
            environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(CHECKOUT)}
            try:
                subprocess.run(
                    command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS,
                    env=environment,
                )  # fmt: skip
                measured[tool].append(json.loads(result.read_text(encoding="utf-8")))
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                print(f"{tool}: {error} {error.stderr!r:.2000}", file=sys.stderr)
    return measured


def _table(
    measured: dict[str, list[dict[str, Any]]], texts: Sequence[str], truth: NDArray[np.int64]
) -> str:
    lines = [
        "| tool | docs per CPU-s | wall s | extra peak MiB | pairs | recall | precision |",
        "|---|---|---|---|---|---|---|",
    ]
    for tool, results in measured.items():
        if not results:
            lines.append(f"| {tool} | failed or over {TIMEOUT_SECONDS} s | | | | | |")
            continue
        cpu, wall, memory = (
            statistics.median(result[field] for result in results)
            for field in ("cpu_seconds", "wall_seconds", "extra_mib")
        )
        quality = _quality(results[-1]["pairs"], len(texts), truth)
        lines.append(
            f"| {tool} | {len(texts) / cpu:,.0f} | {wall:.2f} | {memory:.0f} | {quality} |"
        )
    return "\n".join(lines)


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
