"""What a check found, as facts for a program and as lines for a person."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from factory.training.check.checked import Checked

GIB = 2**30


def facts(found: Checked, tokens: float, share: float) -> Mapping[str, Any]:
    """Everything, as JSON can hold it."""
    layout = found.layout
    return {
        "recipe": found.recipe,
        "model": found.model or None,
        "gpu": found.gpu.name,
        "valid": not found.broken,
        "broken": found.broken,
        "layout": asdict(layout)
        | {
            "data": layout.data,
            "expert_data": layout.expert_data,
            "tokens_per_step": layout.tokens_per_step,
        },
        "parameters": {
            "total": found.parameters.total,
            "language": found.parameters.language,
            "vision": found.parameters.vision,
            "active": found.parameters.active,
        },
        "named": [asdict(one) | {"confirmed": one.confirmed} for one in found.named],
        "unlooked": found.unlooked,
        "memory_bytes": None
        if found.memory is None
        else asdict(found.memory) | {"total": found.memory.total},
        "fits": found.fits,
        "flops_per_token": found.flops_per_token,
        "tokens": tokens,
        "mfu": share,
        "gpu_hours": found.gpu_hours(tokens, share),
    }


def lines(found: Checked, tokens: float, share: float) -> Iterator[tuple[str, str]]:
    """Name and value, one a line."""
    yield from _layout(found)
    yield from _parameters(found)
    yield from _memory(found)
    hours = found.gpu_hours(tokens, share)
    yield (
        "cost",
        f"{hours:,.4g} GPU-hours for {tokens / 1e9:,.6g} billion tokens, at {share:.0%} of the "
        f"peak: {hours / found.layout.gpus:,.3g} h on {found.layout.gpus} GPUs",
    )
    yield "", f"{found.flops_per_token / 1e9:,.3g} GFLOP a token; padding and images come on top"


def _layout(found: Checked) -> Iterator[tuple[str, str]]:
    one = found.layout
    words = [f"{one.gpus} x {found.gpu.name}", f"TP {one.tensor}", f"PP {one.pipeline}"]
    words += [f"CP {one.context}"]
    if one.experts:
        words += [f"EP {one.expert}", f"expert TP {one.expert_tensor}"]
    if not found.broken:
        words += [f"DP {one.data}"]
    words += ["sequence parallel"] if one.sequence_parallel else []
    yield "layout", ", ".join(words)
    step = f"{one.tokens_per_step:,} positions: {one.global_batch} sequences of {one.sequence:,}"
    if not found.broken:
        step += f"; each rank does {one.micro_batches} times {one.micro_batch}"
    yield "step", step


def _count(parameters: int) -> str:
    millions = parameters / 1e6
    return f"{millions / 1e3:,.2f} B" if millions >= 1_000 else f"{millions:,.2f} M"


def _parameters(found: Checked) -> Iterator[tuple[str, str]]:
    held = found.parameters
    words = f"{_count(held.language)} in the language model, {_count(held.active)} active"
    if held.vision:
        words += f"; {_count(held.vision)} for images"
    yield "parameters", words
    for one in found.named:
        said = f"{one.what}: {_count(one.counted)} counted, the name says {one.said / 1e9:g} B"
        far = abs(one.counted - one.said) / one.said
        yield (
            "" if one.confirmed else "unverified",
            f"{said}, {far:.1%} apart: " + _MEANING[one.what, one.confirmed],
        )


_MEANING = {
    ("total", True): "layers, hidden size and experts are confirmed",
    ("total", False): "layers, hidden size and experts are not confirmed",
    ("active", True): "what works on each token is confirmed",
    ("active", False): "heads, their channels and experts a token are not confirmed",
}


def _memory(found: Checked) -> Iterator[tuple[str, str]]:
    one = found.memory
    if one is None:
        yield "memory", "not estimated: the layout is impossible"
        return
    room = found.gpu.memory_bytes
    verdict = "fits" if found.fits else "does NOT fit"
    yield (
        "memory",
        f"about {one.total / GIB:,.1f} GiB of {room / GIB:,.1f} on the fullest GPU (pipeline stage "
        f"{one.stage + 1} of {found.layout.pipeline}): {verdict}",
    )
    parts = {
        "weights": one.weights,
        "gradients": one.gradients,
        "optimizer": one.optimizer,
        "activations": one.activations,
        "logits": one.logits,
        "other, assumed": one.other,
    }
    yield "", ", ".join(f"{name} {value / GIB:,.1f}" for name, value in parts.items() if value)
    if found.unlooked:
        yield (
            "unverified",
            f"{', '.join(found.unlooked)}: set off here, since Transformer Engine is not installed",
        )
