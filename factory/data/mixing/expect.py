"""Expect: what a run of some steps comes to, source by source, before anything is trained.

Sources are taken for streams that flow at the rates of their shares. When one reaches its cap of
epochs it leaves, and the others flow faster: as the sampler does it, in steps instead of samples.
How full sequences get is found by packing some buffers of measured lengths.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import batched

from factory.data.mixing.lock import Expectations, Expected, MixLock
from factory.data.mixing.measure import Measured
from factory.data.mixing.settings import DataSettings
from factory.data.mixing.shares import Basis, shares
from factory.data.packing import Packing, groups
from factory.errors import SpecError

BUFFERS = 4
"""Of the mix's size, to be packed."""

TINY = 1e-9
"""Of a step: what is left of one after it was cut into parts."""


def expectations(
    lock: MixLock, settings: DataSettings, measured: Sequence[Sequence[Measured]]
) -> Expectations:
    """What a run comes to.

    Args:
        lock: of the mix.
        settings: of the recipe.
        measured: for each stage, what the samples of each source come to in its context.

    Raises:
        SpecError: nothing of a source can be trained on.
    """
    for stage, of_stage in zip(lock.stages, measured, strict=True):
        for source, weight, one in zip(lock.keys, stage.weights, of_stage, strict=True):
            if weight:
                _refuse_barren(source, one, lock.basis)
    flows = [_Flow() for _ in lock.sources]
    ends_at: int | None = None
    stages = [stage for stage in lock.stages if stage.from_step < settings.steps]
    ends = [*(stage.from_step for stage in stages[1:]), settings.steps]
    for at, (stage, end) in enumerate(zip(stages, ends, strict=True)):
        now = float(stage.from_step)
        while ends_at is None and now < end - TINY:
            rates = _rates(lock, settings, at, measured[at], flows)
            if rates is None:
                ends_at = math.ceil(now - TINY)
                break
            step = min([end - now, *_until_caps(lock, flows, rates)])
            now += step
            for flow, rate, one in zip(flows, rates, measured[at], strict=True):
                flow.add(rate * step, one)
            _leave(lock, flows, now)
    return _told(lock, settings, measured[0], flows, ends_at)


@dataclass(slots=True)
class _Flow:
    """What has come of a source."""

    drawn: float = 0.0
    kept: float = 0.0
    tokens: float = 0.0
    loss_tokens: float = 0.0
    capped_at: int | None = None

    def add(self, draws: float, one: Measured) -> None:
        self.drawn += draws
        self.kept += draws * one.kept / one.samples
        self.tokens += draws * one.tokens / one.samples
        self.loss_tokens += draws * one.loss_tokens / one.samples


def _rates(
    lock: MixLock,
    settings: DataSettings,
    stage: int,
    measured: Sequence[Measured],
    flows: Sequence[_Flow],
) -> list[float] | None:
    """Samples of each source that are drawn in a step; None where caps leave nothing."""
    weights = [
        weight if flow.capped_at is None else 0.0
        for weight, flow in zip(lock.stages[stage].weights, flows, strict=True)
    ]
    share = shares(weights, [source.max_share for source in lock.sources])
    if share is None:
        return None
    draws = [
        part * one.samples / _amount(one, lock.basis) if part else 0.0
        for part, one in zip(share, measured, strict=True)
    ]
    tokens = math.fsum(d * one.tokens / one.samples for d, one in zip(draws, measured, strict=True))
    step = settings.sequences * _tokens_of_a_sequence(lock, stage, draws, measured)
    return [draw * step / tokens for draw in draws]


def _tokens_of_a_sequence(
    lock: MixLock, stage: int, draws: Sequence[float], measured: Sequence[Measured]
) -> float:
    """The mean over those that some buffers are packed into, filled as the stage draws."""
    packing = Packing(
        context=lock.stages[stage].context,
        regime=lock.packing.regime,
        buffer=lock.packing.buffer,
        alignment=lock.packing.alignment,
    )
    lengths = _mixed(draws, measured, BUFFERS * packing.buffer)
    packs = 0
    for buffer in batched(lengths, packing.buffer):
        whole = math.ceil(sum(buffer) / packing.context)
        packs += whole if packing.crossing else len(groups(buffer, packing))
    return sum(lengths) / packs


def _mixed(draws: Sequence[float], measured: Sequence[Measured], count: int) -> list[int]:
    """Lengths of about so many pieces, of each source in its share, one among the others."""
    rates = [d * len(one.lengths) / one.samples for d, one in zip(draws, measured, strict=True)]
    total = math.fsum(rates)
    placed: list[tuple[float, int, int]] = []
    for source, (rate, one) in enumerate(zip(rates, measured, strict=True)):
        pieces = math.ceil(count * rate / total - TINY)
        for at in range(pieces):
            length = one.lengths[at * len(one.lengths) // pieces]
            placed.append(((at + 0.5) / pieces, source, length))
    return [length for _, _, length in sorted(placed)]


def _amount(one: Measured, basis: Basis) -> int:
    return {"sample": one.kept, "token": one.tokens, "loss_token": one.loss_tokens}[basis]


def _until_caps(lock: MixLock, flows: Sequence[_Flow], rates: Sequence[float]) -> list[float]:
    """Steps until each source that has a cap reaches it."""
    return [
        max(0.0, (source.max_epochs * source.samples - flow.drawn) / rate)
        for source, flow, rate in zip(lock.sources, flows, rates, strict=True)
        if source.max_epochs is not None and rate > 0
    ]


def _leave(lock: MixLock, flows: Sequence[_Flow], now: float) -> None:
    for source, flow in zip(lock.sources, flows, strict=True):
        if source.max_epochs is None or flow.capped_at is not None:
            continue
        if flow.drawn >= source.max_epochs * source.samples * (1 - TINY):
            flow.capped_at = math.ceil(now - TINY)


def _refuse_barren(key: str, one: Measured, basis: Basis) -> None:
    if one.samples and _amount(one, basis):
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in one.dropped.items())
    raise SpecError(
        f"Nothing of {key} can be trained on: of the {one.samples:,} samples that were encoded, "
        f"all are dropped ({reasons or 'there are none'}). Take it out of the mix, or change its "
        "`overflow`, its `loss`, or the recipe's context or template."
    )


def _told(
    lock: MixLock,
    settings: DataSettings,
    measured: Sequence[Measured],
    flows: Sequence[_Flow],
    ends_at: int | None,
) -> Expectations:
    total = _Flow(
        kept=math.fsum(flow.kept for flow in flows),
        tokens=math.fsum(flow.tokens for flow in flows),
        loss_tokens=math.fsum(flow.loss_tokens for flow in flows),
    )
    return Expectations(
        recipe=settings.recipe,
        steps=settings.steps,
        sequences=settings.sequences,
        tokens=total.tokens,
        ends_at=ends_at,
        sources=tuple(
            Expected(
                measured=one.samples,
                dropped=1 - _part(one.kept, one.samples),
                mean_tokens=_mean(flow.tokens, flow, one.tokens, one),
                mean_loss_tokens=_mean(flow.loss_tokens, flow, one.loss_tokens, one),
                samples=flow.kept,
                tokens=flow.tokens,
                loss_tokens=flow.loss_tokens,
                epochs=flow.drawn / source.samples,
                sample_share=_part(flow.kept, total.kept),
                token_share=_part(flow.tokens, total.tokens),
                loss_token_share=_part(flow.loss_tokens, total.loss_tokens),
                capped_at=flow.capped_at,
            )
            for source, one, flow in zip(lock.sources, measured, flows, strict=True)
        ),
    )


def _mean(amount: float, flow: _Flow, measured: int, one: Measured) -> float:
    """Over the run; of what was measured where the run reads nothing of it."""
    return amount / flow.drawn if flow.drawn else measured / max(1, one.samples)


def _part(amount: float, total: float) -> float:
    return min(1.0, amount / total) if total else 0.0
