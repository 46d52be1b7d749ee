"""Accounts of batches made by hand, and the synthetic mix with the shares of a real clinical run.

The real run: 71% biomedical text, 10% warm-up and 19% retention by sample, which came to 43% text
by token and 51% by loss token; tool use went from 12% to 5%.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from factory.data.mixing import Sampler, Supply
from factory.data.mixing.lock import LockedPacking, LockedSource, LockedStage, MixLock
from factory.data.mixing.shares import Basis
from factory.data.stream.account import FIELDS, BatchAccount
from factory.observe.mixture.ledger import Ledger
from factory.observe.mixture.plan import Plan, Source, Stage
from factory.observe.mixture.totals import none
from factory.observe.mixture.watch import Watch
from factory.reports import MixtureLine


@dataclass(frozen=True)
class Kind:
    """A source and the mean sample in it."""

    key: str
    role: str
    weight: float
    size: int
    tokens: int
    loss_tokens: int


CLINICAL = (
    Kind("public/text/abstracts", "domain_shift", 62.0, 160_000, 390, 390),
    Kind("public/text/case_reports", "domain_shift", 9.0, 12_000, 470, 470),
    Kind("public/text/questions", "warmup", 8.0, 40_000, 1_500, 1_400),
    Kind("public/text/definitions", "warmup", 2.0, 89, 1_200, 1_150),
    Kind("public/chat/tool_use", "retention", 12.0, 20_000, 830, 232),
    Kind("public/chat/general", "retention", 7.0, 30_000, 1_900, 1_580),
)

DRAWS = 40_000
"""Samples of the whole run: the smallest source comes nine times, a fifth of the largest is not
seen."""


def lock_of(kinds: Sequence[Kind] = CLINICAL, basis: Basis = "sample", **changed) -> MixLock:
    """A lock as `factory mix lock` would make it."""
    fields = {
        "name": "clinical",
        "basis": basis,
        "sources": tuple(
            LockedSource(
                key=kind.key,
                version="0" * 20,
                role=kind.role,
                weight=kind.weight,
                max_epochs=None,
                max_share=None,
                overflow="split",
                samples=kind.size,
                licenses=("CC-BY-4.0",),
            )
            for kind in kinds
        ),
        "stages": (
            LockedStage(from_step=0, context=4096, weights=tuple(kind.weight for kind in kinds)),
        ),
        "tokenizer": "bytes",
        "tokenizer_identity": "t",
        "chat": "plain",
        "template_identity": "c",
        "packing": LockedPacking(regime="boundary_aware", buffer=1024, alignment=1, shuffle=100),
    }
    return MixLock(**(fields | changed))


def plan_of(weights: Sequence[float] = (3.0, 1.0), **changed) -> Plan:
    """A plan of small sources."""
    fields = {
        "sources": tuple(
            Source(key=f"public/text/s{at}", role="warmup", size=1_000)
            for at in range(len(weights))
        ),
        "basis": "sample",
        "stages": (Stage(after=0, weights=tuple(weights)),),
    }
    return Plan(**(fields | changed))


def account(
    rows: Sequence[Sequence[int]], drawn: Sequence[tuple[int, int]], *, slots: int = 0, **changed
) -> BatchAccount:
    """An account with those counts; what is no token is padding at the end."""
    counts = np.array(rows, np.int64).reshape(-1, len(FIELDS))
    tokens = int(counts[:, 2].sum())
    fields = {
        "counts": counts,
        "slots": max(slots, tokens),
        "ending": max(slots, tokens) - tokens,
        "aligning": 0,
        "drawn": np.array(drawn, np.int64).reshape(-1, 2),
        "digest": bytes(32),
    }
    return BatchAccount(**(fields | changed))


def drawn_batches(
    kinds: Sequence[Kind], *, basis: Basis, samples: int, reader: int = 0, readers: int = 1
) -> Iterator[BatchAccount]:
    """What one reader's batches of 64 samples hold, chosen by the real sampler.

    Readers read every `readers`th sample of a source, each in order, over and over.
    """
    supply = [Supply(key=kind.key, samples=kind.size // readers) for kind in kinds]
    sampler = Sampler([kind.weight for kind in kinds], basis=basis, supply=supply, reader=reader)
    chance = np.random.default_rng(reader)
    turn = [0] * len(kinds)
    for _ in range(samples // 64):
        counts = np.zeros((len(kinds), len(FIELDS)), np.int64)
        drawn: list[tuple[int, int]] = []
        for _ in range(64):
            at = sampler.choose()
            factor = chance.uniform(0.5, 1.5)
            tokens = int(kinds[at].tokens * factor)
            loss = int(kinds[at].loss_tokens * factor)
            sampler.record(at, samples=1, tokens=tokens, loss_tokens=loss)
            counts[at] += (1, 1, tokens, loss, 0, 0)
            drawn.append((at, turn[at] % supply[at].samples * readers + reader))
            turn[at] += 1
        yield account(counts.tolist(), drawn, slots=-(-int(counts[:, 2].sum()) // 4096) * 4096)


READERS = 2
STEPS = DRAWS // 64 // READERS
SIZES = tuple(kind.size for kind in CLINICAL)


@functools.cache
def clinical_lines(basis: Basis = "sample") -> list[MixtureLine]:
    """A run of two readers, with a line every 50 steps."""
    watch = Watch(Plan.of(lock_of(basis=basis), READERS), steps=STEPS)
    ledgers = [Ledger(SIZES) for _ in range(READERS)]
    streams = [
        drawn_batches(
            CLINICAL, basis=basis, samples=DRAWS // READERS, reader=reader, readers=READERS
        )
        for reader in range(READERS)
    ]
    lines = []
    for step, accounts in enumerate(zip(*streams, strict=True), start=1):
        for ledger, account in zip(ledgers, accounts, strict=True):
            ledger.on_batch(account)
        if watch.due(step, 50):
            totals = sum((ledger.totals for ledger in ledgers), none(len(CLINICAL)))
            lines.append(watch.line(step, totals))
    return lines
