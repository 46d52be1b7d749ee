"""Words: locks as a researcher speaks of them, line by line."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from factory.data.mixing.lock import Expected, LockedSource, LockedStage, MixLock, MixRole
from factory.data.mixing.shares import Basis

ROLE: Mapping[MixRole, str] = {
    "warmup": "warm-up",
    "domain_shift": "domain shift",
    "retention": "retention",
}

BASIS: Mapping[Basis, str] = {
    "sample": "samples",
    "token": "tokens",
    "loss_token": "tokens that carry loss",
}

OVERFLOW: Mapping[str, str] = {
    "split": "split",
    "truncate_middle": "cut in the middle",
    "drop": "dropped",
}
"""What becomes of a sample that is longer than the context."""

SEEN = 0.0005
"""Shares that differ by less are the same in a table: measured ones are good to a percent."""


def percent(share: float) -> str:
    """A share of a stream."""
    return f"{100 * share:.1f}%" if share >= SEEN or not share else f"{100 * share:.2g}%"


def amount(count: float) -> str:
    """Tokens or samples: `62.1 B`."""
    for size, name in ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1e3, " k")):
        if count >= size:
            return f"{count / size:.3g}{name}"
    return f"{count:.3g}"


def caps(source: LockedSource) -> str:
    """The caps of a source; empty where it has none."""
    parts = [
        None if source.max_epochs is None else f"{source.max_epochs:g} epochs",
        None if source.max_share is None else f"{percent(source.max_share)} of the stream",
    ]
    return ", ".join(part for part in parts if part)


def changed(before: MixLock, after: MixLock) -> list[str]:
    """How two locks differ, in what they read and in what comes of it."""
    old = {source.key: at for at, source in enumerate(before.sources)}
    new = {source.key: at for at, source in enumerate(after.sources)}
    lines = list(_of_the_whole(before, after))
    lines += (f"- {key}: {_described(before, at)}" for key, at in old.items() if key not in new)
    lines += (f"+ {key}: {_described(after, at)}" for key, at in new.items() if key not in old)
    both = [key for key in new if key in old]
    for key in both:
        lines += (f"{key}: {line}" for line in _of_a_source(before, old[key], after, new[key]))
    if both != [key for key in old if key in new]:
        lines.append("the datasets are in another order, so samples come in another order")
    return lines


def _of_the_whole(before: MixLock, after: MixLock) -> Iterator[str]:
    if before.basis != after.basis:
        yield f"weights are shares of {BASIS[before.basis]} -> of {BASIS[after.basis]}"
    stages = zip_longest(map(_stage, before.stages), map(_stage, after.stages), fillvalue="none")
    for at, (old, new) in enumerate(stages, start=1):
        if old != new:
            yield f"stage {at}: {old} -> {new}"
    named = {
        "tokenizer": (before.tokenizer_identity[:12], after.tokenizer_identity[:12]),
        "conversations": (before.chat, after.chat),
        "images": (before.image_processor, after.image_processor),
        "packing": (before.packing.regime, after.packing.regime),
        "packing buffer": (before.packing.buffer, after.packing.buffer),
        "alignment": (before.packing.alignment, after.packing.alignment),
        "shuffle buffer": (before.packing.shuffle, after.packing.shuffle),
    }
    for name, (old, new) in named.items():
        if old != new:
            yield f"{name}: {old} -> {new}"


def _of_a_source(before: MixLock, at: int, after: MixLock, now: int) -> Iterator[str]:
    old, new = before.sources[at], after.sources[now]
    if old.version != new.version:
        yield f"version {old.version} -> {new.version} ({old.samples:,} -> {new.samples:,} samples)"
    named = {
        "role": (ROLE[old.role], ROLE[new.role]),
        "weight": (_weights(before, at), _weights(after, now)),
        "caps": (caps(old) or "none", caps(new) or "none"),
        "too long is": (OVERFLOW[old.overflow], OVERFLOW[new.overflow]),
        "licences": (", ".join(old.licenses), ", ".join(new.licenses)),
    }
    for name, (was, is_now) in named.items():
        if was != is_now:
            yield f"{name} {was} -> {is_now}"
    if before.expectations is not None and after.expectations is not None:
        yield from _of_what_comes(
            before.expectations.sources[at], after.expectations.sources[now], new
        )


def _of_what_comes(old: Expected, new: Expected, source: LockedSource) -> Iterator[str]:
    shares = {
        "share by sample": (old.sample_share, new.sample_share),
        "by token": (old.token_share, new.token_share),
        "by loss token": (old.loss_token_share, new.loss_token_share),
    }
    told = [
        f"{name} {percent(was)} -> {percent(now)}"
        for name, (was, now) in shares.items()
        if abs(was - now) >= SEEN
    ]
    if told:
        yield ", ".join(told)
    if f"{old.epochs:.2g}" != f"{new.epochs:.2g}":
        yield f"epochs {old.epochs:.2g} -> {new.epochs:.2g}"
    if new.capped_at is not None and new.capped_at != old.capped_at:
        yield f"its cap of {source.max_epochs:g} epochs is reached at step {new.capped_at:,}"


def _described(lock: MixLock, at: int) -> str:
    source = lock.sources[at]
    parts = [ROLE[source.role], f"weight {_weights(lock, at)}", caps(source)]
    if lock.expectations is not None:
        one = lock.expectations.sources[at]
        parts.append(
            f"{percent(one.sample_share)} of samples, {percent(one.token_share)} of tokens, "
            f"{percent(one.loss_token_share)} of loss tokens, {one.epochs:.2g} epochs"
        )
    return ", ".join(part for part in parts if part)


def _weights(lock: MixLock, at: int) -> str:
    """The weight of a source, stage by stage where it changes."""
    weights = [f"{stage.weights[at]:g}" for stage in lock.stages]
    return weights[0] if len(set(weights)) == 1 else ", then ".join(weights)


def _stage(stage: LockedStage) -> str:
    return f"from step {stage.from_step:,} with sequences of {stage.context:,} tokens"
