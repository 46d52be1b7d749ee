"""What Dagster shows of the mix of a run: its lock, and what is expected to come of it."""

from pathlib import Path
from typing import Any

import dagster as dg

from factory.data.mixing.lock import Expectations, MixLock
from factory.data.mixing.of_runs import lock_of
from factory.data.mixing.words import BASIS, ROLE, amount, caps, percent


def mix_metadata(run: Path) -> dict[str, Any]:
    """Of the run in that directory; nothing where it has no lock yet."""
    lock = lock_of(run)
    if lock is None:
        return {}
    rows = [_row(lock, at, lock.expectations) for at in range(len(lock.sources))]
    return {
        "mix lock": lock.hash,
        "mix": dg.MetadataValue.table(records=[dg.TableRecord(row) for row in rows]),
        "weights are shares of": BASIS[lock.basis],
    }


def _row(lock: MixLock, at: int, expected: Expectations | None) -> dict[str, str | int]:
    source = lock.sources[at]
    row: dict[str, str | int] = {
        "dataset": source.key,
        "role": ROLE[source.role],
        "weight": f"{source.weight:g}",
        "caps": caps(source),
        "samples": source.samples,
        "version": source.version,
    }
    if expected is None:
        return row
    one = expected.sources[at]
    return row | {
        "expected share by sample": percent(one.sample_share),
        "by token": percent(one.token_share),
        "by loss token": percent(one.loss_token_share),
        "epochs": f"{one.epochs:.2g}",
        "tokens": amount(one.tokens),
    }
