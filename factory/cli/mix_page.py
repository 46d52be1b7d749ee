"""A mix on the terminal: what it is made of, and what comes of it."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from factory.cli.output import table
from factory.data.mixing.lock import Expectations, LockedSource, MixLock
from factory.data.mixing.words import BASIS, OVERFLOW, ROLE, amount, caps, percent

MANY_EPOCHS = 4
"""Up to so many, repeated text is nearly as good as new (Muennighoff et al., NeurIPS 2023)."""

MANY_DROPPED = 0.01


def page(lock: MixLock, name: str) -> Iterator[Table | Text]:
    """The parts of the page, from the top."""
    yield Text.assemble((name, "bold"), f"  {lock.hash}")
    yield Text(f"weights are shares of {BASIS[lock.basis]}")
    expected = lock.expectations
    if expected is not None:
        yield Text(
            f"{expected.recipe}: {expected.steps:,} steps of {expected.sequences:,} sequences, "
            f"about {amount(expected.tokens)} tokens"
        )
    yield Text("")
    yield table("", [_row(lock, at, expected) for at in range(len(lock.sources))], numbers=_NUMBERS)
    yield Text("")
    yield table("", [_read(source) for source in lock.sources], numbers=("samples",))
    yield Text("")
    if len(lock.stages) > 1:
        yield table("Stages", list(_stages(lock)), numbers=("from step", "context", *lock.keys))
        yield Text("")
    yield Text(
        f"tokens by {lock.tokenizer} ({lock.tokenizer_identity[:12]}), conversations "
        f"{'by its template' if lock.chat == 'template' else 'as labelled lines'}, packed "
        f"{lock.packing.regime} from a buffer of {lock.packing.buffer:,} sequences",
        "dim",
    )
    for note in notes(lock):
        yield Text(note, "yellow")


def notes(lock: MixLock) -> Iterator[str]:
    """What a reader of the page should not overlook."""
    expected = lock.expectations
    if expected is None:
        return
    for source, one in zip(lock.sources, expected.sources, strict=True):
        if one.capped_at is not None:
            yield (
                f"{source.key} reaches its cap of {source.max_epochs:g} epochs at step "
                f"{one.capped_at:,} of {expected.steps:,}; the others take its share from there."
            )
        elif one.epochs > MANY_EPOCHS:
            yield (
                f"{source.key} is read {one.epochs:.1f} times. Beyond {MANY_EPOCHS}, repeated text "
                "teaches less and less; max_epochs caps it."
            )
        if one.dropped > MANY_DROPPED:
            yield (
                f"{percent(one.dropped)} of {source.key} is dropped: nothing of those samples can "
                "be trained on."
            )
    if expected.ends_at is not None:
        yield (
            f"The caps leave nothing to read from step {expected.ends_at:,} of "
            f"{expected.steps:,} on: no run of it gets through the gate."
        )


_NUMBERS = ("weight", "by sample", "by token", "by loss token", "epochs", "tokens")


def _row(lock: MixLock, at: int, expected: Expectations | None) -> dict[str, Any]:
    source = lock.sources[at]
    one = None if expected is None else expected.sources[at]
    return {
        "dataset": source.key,
        "role": ROLE[source.role],
        "weight": f"{source.weight:g}",
        "by sample": one and percent(one.sample_share),
        "by token": one and percent(one.token_share),
        "by loss token": one and percent(one.loss_token_share),
        "epochs": one and f"{one.epochs:.2g}",
        "tokens": one and amount(one.tokens),
    }


def _read(source: LockedSource) -> dict[str, Any]:
    return {
        "dataset": source.key,
        "samples": f"{source.samples:,}",
        "version": source.version,
        "caps": caps(source) or None,
        "too long is": OVERFLOW[source.overflow],
    }


def _stages(lock: MixLock) -> Iterator[dict[str, Any]]:
    for stage in lock.stages:
        weights = zip(lock.keys, stage.weights, strict=True)
        yield {
            "from step": f"{stage.from_step:,}",
            "context": f"{stage.context:,}",
            **{key: f"{weight:g}" if weight else "paused" for key, weight in weights},
        }
