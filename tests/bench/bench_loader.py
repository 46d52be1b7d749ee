"""The loader beside bare Energon: time for each sample, of raw and of pre-tokenized text.

Medical texts of this machine, one in ten of them long. Both sides read the same shards, with the
same tokenizer (Tekken's 131,072 tokens), cuts, shuffling and packing buffer. Ours chooses sources
by exact shares, packs, counts and hashes; Energon blends at random and packs what Megatron-Bridge's
first-fit-decreasing puts together. "Pre-tokenized" samples hold their tokens as JSON, so that what
is measured is everything but the tokenizer.

    python -m tests.bench bench_loader
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import batched
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from factory.data import Loss, Sample, energon
from factory.data.encoding import Encoded, Encoder, load
from factory.data.energon import Entry
from factory.data.mixing import LockedPacking, LockedSource, LockedStage, MixLock
from factory.data.packing import Breaks
from factory.data.sample import canonical
from factory.settings import CHECKOUT
from tests.bench import corpora

SHORT, LONG = "public/text/short", "public/text/long"
SHORT_SAMPLES, LONG_SAMPLES, TEXTS_IN_A_LONG_ONE = 6_000, 250, 30
SHARES = {SHORT: 0.9, LONG: 0.1}
TOKENIZER, CONTEXT, BUFFER, SHUFFLE = "tekken_240911", 4_096, 1_024, 100
BATCHES, ROUNDS = 250, 5
KINDS = ("raw text", "pre-tokenized")


def run() -> str:
    """Measure, and return the section."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        found = {kind: _in_process(kind, Path(folder)) for kind in KINDS}
    lines = [
        "## Loader",
        "",
        f"{SHORT_SAMPLES:,} medical texts and {LONG_SAMPLES} of {TEXTS_IN_A_LONG_ONE} such texts "
        f"each, {SHARES[SHORT]:.0%} to {SHARES[LONG]:.0%} of the samples; tokenizer {TOKENIZER}, "
        f"context {CONTEXT:,}, buffer {BUFFER:,}, one process. CPU time over {BATCHES} batches "
        f"after as many to warm up, the median of {ROUNDS} rounds in turn. A sample is counted "
        "when it is drawn.",
        "",
        "| | loader | CPU-ms a sample | samples/s | tokens/s |",
        "|---|---|---|---|---|",
    ]
    for kind, sides in found.items():
        for name, side in sides.items():
            lines.append(
                f"| {kind} | {name} | {1e3 * side['seconds'] / side['samples']:.3f} | "
                f"{side['samples'] / side['seconds']:,.0f} | "
                f"{side['tokens'] / side['seconds']:,.0f} |"
            )
    ratios = {
        kind: _per_sample(sides["ours"]) / _per_sample(sides["bare Energon"])
        for kind, sides in found.items()
    }
    told = "; ".join(f"{kind} {ratio:.2f}" for kind, ratio in ratios.items())
    lines += ["", f"Ours over bare Energon's, time a sample: {told}. Goal: at most 1.1."]
    return "\n".join(lines)


def _per_sample(side: Mapping[str, float]) -> float:
    return side["seconds"] / side["samples"]


class Counted:
    """An encoder that counts what goes through it: the samples and tokens that a loader draws."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.samples = self.tokens = 0

    def encode(self, sample: Mapping[str, Any], key: str = "") -> Any:
        """One sample."""
        made = self.encoder.encode(sample, key)
        self.samples += 1
        self.tokens += len(made.tokens)
        return made


class Pretokenized:
    """Tokens that a sample holds already."""

    def encode(self, sample: Mapping[str, Any], key: str = "") -> Encoded:
        """One sample; its tokens all carry loss but the first."""
        tokens = np.array(sample["tokens"], dtype=np.int32)
        mask = np.ones(len(tokens), dtype=np.bool_)
        mask[0] = False
        return Encoded(
            tokens=tokens,
            loss_mask=mask,
            breaks=Breaks(),
            images=(),
            key=key,
            source=sample["source"],
        )


def _texts() -> Iterator[tuple[str, Sample]]:
    texts = iter(corpora.medical())
    for number in range(SHORT_SAMPLES):
        yield SHORT, _document(number, [next(texts)])
    wanted = batched(texts, TEXTS_IN_A_LONG_ONE)
    for number, several in zip(range(LONG_SAMPLES), wanted, strict=False):
        yield LONG, _document(number, several)


def _document(number: int, texts: Any) -> Sample:
    return Sample.document(id=f"{number}", title="", sections=[("", text) for text in texts])


def _write(base: Path) -> None:
    """Both datasets, as text and as tokens."""
    encoder = Encoder(load(TOKENIZER), chat="plain")
    entries: dict[str, list[Entry]] = {}
    for key, sample in _texts():
        content = replace(sample, source=key).as_dict()
        made: Any = encoder.encode(content)
        tokens = {"source": key, "tokens": made.tokens.tolist()}
        for kind, value in zip(KINDS, (content, tokens), strict=True):
            entry = Entry(sample.id, canonical(value))
            entries.setdefault(f"{kind}/{key}", []).append(entry)
    for name, several in entries.items():
        folder = base / name
        folder.mkdir(parents=True)
        several.sort(key=lambda one: energon.place(one.id))
        for number, part in enumerate(batched(several, 1_000)):
            energon.write_shard(folder / energon.shard_name(number), part)
        energon.write_loss(folder, Loss())
        energon.prepare(folder, 1, lambda _: None)


def _lock() -> MixLock:
    encoder = Encoder(load(TOKENIZER), chat="plain")
    counts = {SHORT: SHORT_SAMPLES, LONG: LONG_SAMPLES}
    return MixLock(
        name="bench",
        basis="sample",
        sources=tuple(
            LockedSource(
                key=key,
                version="bench",
                role="domain_shift",
                weight=share,
                max_epochs=None,
                max_share=None,
                overflow="split",
                samples=counts[key],
                licenses=(),
            )
            for key, share in SHARES.items()
        ),
        stages=(LockedStage(from_step=0, context=CONTEXT, weights=tuple(SHARES.values())),),
        tokenizer=TOKENIZER,
        tokenizer_identity=encoder.tokenizer.identity,
        chat="plain",
        template_identity=encoder.identity,
        packing=LockedPacking(regime="boundary_aware", buffer=BUFFER, alignment=1, shuffle=SHUFFLE),
    )


def _in_process(kind: str, base: Path) -> dict[str, dict[str, float]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.bench_loader", kind, base],
        env={**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"},
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _sides(kind: str, base: Path) -> dict[str, dict[str, float]]:
    """CPU-seconds, samples and tokens of the median round of each loader."""
    from factory.data.stream.build import batches, encoder_of, loader
    from factory.data.stream.reader import Reader
    from factory.training.cpu import placeholder

    lock = _lock()
    folders = {key: base / kind / key for key in lock.keys}

    def encoder() -> Counted:
        return Counted(encoder_of(lock, folders) if kind == KINDS[0] else Pretokenized())

    with placeholder.where_missing():
        from tests.bench.bare_energon import bare_loader
    counted = {"bare Energon": encoder(), "ours": encoder()}
    reader = Reader(seed=1, micro_batch_size=1, global_batch_size=1)
    streams: dict[str, Iterator[Any]] = {
        "bare Energon": iter(bare_loader(lock, folders, base, counted["bare Energon"])),
        "ours": iter(loader(batches(lock, folders, reader, encoder=counted["ours"]))),
    }
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in streams}
    for warm in (False, *[True] * ROUNDS):
        for name, stream in streams.items():
            side = _round(stream, counted[name])
            if warm:
                rounds[name].append(side)
    return {name: _middle(sides) for name, sides in rounds.items()}


def _round(stream: Iterator[Any], counted: Counted) -> dict[str, float]:
    samples, tokens, before = counted.samples, counted.tokens, time.process_time()
    for _ in range(BATCHES):
        next(stream)
    return {
        "seconds": time.process_time() - before,
        "samples": counted.samples - samples,
        "tokens": counted.tokens - tokens,
    }


def _middle(sides: list[dict[str, float]]) -> dict[str, float]:
    middle = median(map(_per_sample, sides))
    return min(sides, key=lambda side: abs(_per_sample(side) - middle))


if __name__ == "__main__":
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        measured = _sides(sys.argv[1], Path(sys.argv[2]))
    print(json.dumps(measured))
