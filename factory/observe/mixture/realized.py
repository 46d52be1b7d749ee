"""Realized: the lines of a ledger as what became of the mix."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from factory.data.mixing.lock import MixLock
from factory.data.mixing.of_runs import FILE
from factory.data.stream.account import LOSS_TOKENS, SAMPLES, TOKENS
from factory.errors import RunFailed
from factory.observe.mixture.drift import COLUMN, judged
from factory.observe.mixture.files import ledger_of, lock_of, reading_of
from factory.observe.mixture.plan import Plan
from factory.observe.mixture.totals import COLUMNS, POSITIONS, Totals, share
from factory.observe.mixture.watch import Watch
from factory.reports import MixtureLine, RealizedMix, RealizedSource, SourceCounts


def realized_of(run: Path) -> RealizedMix | None:
    """What a run has seen so far, from the files that it wrote; None before it counted anything.

    Raises:
        RunFailed: the files do not belong together or cannot be read.
    """
    lines = ledger_of(run)
    if not lines:
        return None
    lock = lock_of(run)
    keys = tuple(source.source for source in lines[-1].sources)
    if keys != lock.keys:
        raise RunFailed(
            f"The ledger of {run} counts {', '.join(keys)}, but its {FILE} names "
            f"{', '.join(lock.keys)}: one of them is of another run."
        )
    return realized(lock, lines, reading_of(run).readers)


def realized(lock: MixLock, lines: Sequence[MixtureLine], readers: int) -> RealizedMix:
    """What was seen up to the last line, beside what the lock declares.

    Args:
        lock: the mix of the run.
        lines: at least one, in order of their steps, all of one `since`.
        readers: loader workers of all ranks.
    """
    last = lines[-1]
    plan = Plan.of(lock, readers)
    counts = totals_of(last).counts
    declared = _declared(Watch(plan, steps=last.of, since=last.since, begun=last.begun), lines)
    found = judged(counts, declared, plan.basis)
    columns = (SAMPLES, TOKENS, LOSS_TOKENS)
    samples, tokens, loss_tokens = (share(counts[:, at].astype(float)).tolist() for at in columns)
    return RealizedMix(
        mix=lock.name,
        mix_lock=lock.hash,
        basis=lock.basis,
        step=last.step,
        of=last.of,
        since=last.since,
        sources=tuple(
            RealizedSource(
                counts=last.sources[at],
                role=source.role,
                size=source.size,
                share_of_samples=samples[at],
                share_of_tokens=tokens[at],
                share_of_loss_tokens=loss_tokens[at],
                declared=found[at].declared,
                band=found[at].band,
                within=found[at].within,
                epochs=epochs(last.sources[at], source.size),
                coverage=last.sources[at].distinct / source.size,
                max_epochs=source.max_epochs,
                reaches=last.reaches.get(source.key),
            )
            for at, source in enumerate(plan.sources)
        ),
        slots=last.slots,
        ending=last.ending,
        aligning=last.aligning,
        alarms=tuple(alarm for line in lines for alarm in line.alarms),
    )


def epochs(counts: SourceCounts, size: int) -> float:
    """How often a source was read, what was dropped included. What only waits does not count."""
    dropped = sum(samples for samples, _ in counts.dropped.values())
    used = counts.samples + dropped
    return (counts.distinct + dropped if used <= size else used) / size


def totals_of(line: MixtureLine) -> Totals:
    """The sums that a line was made from."""
    return Totals(
        np.array([[getattr(one, name) for name in COLUMNS] for one in line.sources], np.int64),
        np.array([getattr(line, name) for name in POSITIONS], np.int64),
        {
            (at, reason): numbers
            for at, source in enumerate(line.sources)
            for reason, numbers in source.dropped.items()
        },
    )


def _declared(watch: Watch, lines: Sequence[MixtureLine]) -> list[float]:
    """The declared shares of everything, each interval by what was seen in it.

    An interval in which shares were changing is taken to be as it should.
    """
    column = COLUMN[watch.plan.basis]
    total = np.zeros(len(watch.plan.sources))
    before = np.zeros((len(watch.plan.sources), len(COLUMNS)), np.int64)
    for line in lines:
        totals = totals_of(line)
        watch.line(line.step, totals)
        seen = (totals.counts - before)[:, column].astype(float)
        before = totals.counts
        total += seen if watch.declared is None else seen.sum() * np.array(watch.declared)
    return share(total).tolist()
