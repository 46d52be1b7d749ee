"""Layout: how so many GPUs divide among the kinds of parallelism, and the rules for it.

The rules are Megatron's; each is said in the words of the fields that a run can set. What Bridge
itself checks besides is in `validated`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A recipe's parallel sizes on a number of GPUs."""

    gpus: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    expert_tensor: int
    sequence_parallel: bool
    layers: int
    heads: int
    query_groups: int
    """Heads of keys and values."""

    experts: int
    """0 for a dense model."""

    sequence: int
    """Positions of one sequence."""

    micro_batch: int
    """Sequences of one forward pass of a data-parallel rank."""

    global_batch: int
    """Sequences of one optimizer step."""

    first_stage_layers: int
    """Layers that the first pipeline stage must have: images enter so many."""

    @property
    def model_parallel(self) -> int:
        """GPUs that hold one copy of the model."""
        return self.tensor * self.pipeline * self.context

    @property
    def data(self) -> int:
        """Data-parallel ranks, where the layout is possible."""
        return self.gpus // self.model_parallel

    @property
    def expert_data(self) -> int:
        """Copies of each expert."""
        return max(1, self.gpus // (self.expert_tensor * self.expert * self.pipeline))

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step on one data-parallel rank."""
        return self.global_batch // (self.micro_batch * self.data)

    @property
    def tokens_per_step(self) -> int:
        """Positions of one optimizer step, padding included."""
        return self.global_batch * self.sequence


def layout(config: Any, gpus: int) -> Layout:
    """The layout that a `ConfigContainer` asks for, on that many GPUs."""
    model, train = config.model, config.train
    tensor: int = model.tensor_model_parallel_size
    expert: int = model.expert_model_parallel_size
    return Layout(
        gpus=gpus,
        tensor=tensor,
        pipeline=model.pipeline_model_parallel_size,
        context=model.context_parallel_size,
        expert=expert,
        # As Bridge fills it in: experts that are divided among GPUs are not cut as well.
        expert_tensor=model.expert_tensor_parallel_size or (1 if expert > 1 else tensor),
        sequence_parallel=model.sequence_parallel,
        layers=model.num_layers,
        heads=model.num_attention_heads,
        query_groups=model.num_query_groups or model.num_attention_heads,
        experts=model.num_moe_experts or 0,
        sequence=model.seq_length,
        micro_batch=train.micro_batch_size,
        global_batch=train.global_batch_size,
        first_stage_layers=len(getattr(model, "deepstack_visual_indexes", None) or ()),
    )


def broken(found: Layout) -> list[str]:
    """Every rule that the layout breaks, with numbers and what to set; empty where it is valid."""
    rules = [*_devices(found), *_model(found), *_sequence(found)]
    if found.gpus % found.model_parallel == 0:  # else there is no number of ranks to divide among
        rules += _batch(found)
    return rules


def _devices(found: Layout) -> Iterator[str]:
    if found.gpus % found.model_parallel:
        near = _nearest(found.gpus, found.model_parallel)
        yield (
            f"{found.gpus} GPUs are no multiple of TP {found.tensor} x PP {found.pipeline} x CP "
            f"{found.context} = {found.model_parallel}, so the model's copies do not use them "
            f"all. Use {near} GPUs, or smaller model.*_parallel_size."
        )
    held = found.expert_tensor * found.expert * found.pipeline
    if found.experts and found.gpus % held:
        yield (
            f"{found.gpus} GPUs are no multiple of expert TP {found.expert_tensor} x EP "
            f"{found.expert} x PP {found.pipeline} = {held}. Use {_nearest(found.gpus, held)} "
            "GPUs, or a smaller model.expert_model_parallel_size."
        )


def _model(found: Layout) -> Iterator[str]:
    if found.layers % found.pipeline:
        yield (
            f"{found.layers} layers do not divide by PP {found.pipeline}. "
            f"Set model.pipeline_model_parallel_size to one of {_divisors(found.layers)}."
        )
    elif found.layers // found.pipeline < found.first_stage_layers:
        yield (
            f"The first of PP {found.pipeline} stages has {found.layers // found.pipeline} layers, "
            f"but images enter the first {found.first_stage_layers}. "
            "Set a smaller model.pipeline_model_parallel_size."
        )
    if found.heads % found.query_groups:
        yield (
            f"{found.heads} attention heads do not share {found.query_groups} heads of keys and "
            f"values equally. Set model.num_query_groups to one of {_divisors(found.heads)}."
        )
    if found.heads % found.tensor:
        yield (
            f"{found.heads} attention heads do not divide by TP {found.tensor}. "
            f"Set model.tensor_model_parallel_size to one of {_divisors(found.heads)}."
        )
    elif found.query_groups % found.tensor and found.tensor % found.query_groups:
        yield (
            f"{found.query_groups} heads of keys and values and TP {found.tensor}: one must "
            "divide the other. Set another model.tensor_model_parallel_size."
        )
    if found.experts and found.experts % found.expert:
        yield (
            f"{found.experts} experts do not divide by EP {found.expert}. "
            f"Set model.expert_model_parallel_size to one of {_divisors(found.experts)}."
        )
    if not found.experts and found.expert > 1:
        yield (
            f"EP {found.expert} divides experts, and this model has none. "
            "Set model.expert_model_parallel_size to 1."
        )


def _sequence(found: Layout) -> Iterator[str]:
    if found.sequence_parallel and found.tensor == 1:
        yield (
            "model.sequence_parallel divides among tensor-parallel GPUs, and TP is 1. Set it to "
            "false, or model.tensor_model_parallel_size above 1."
        )
    if found.experts and found.tensor > 1 and not found.sequence_parallel:
        yield (
            f"Experts with TP {found.tensor} need model.sequence_parallel, or each of the GPUs "
            "would send the same tokens. Set it to true."
        )
    slices = (2 * found.context if found.context > 1 else 1) * (
        found.tensor if found.sequence_parallel else 1
    )
    if found.sequence % slices:
        yield (
            f"model.seq_length {found.sequence} does not divide by {slices}, the slices of CP "
            f"{found.context} and TP {found.tensor}. The nearest below is "
            f"{found.sequence - found.sequence % slices}."
        )


def _batch(found: Layout) -> Iterator[str]:
    if found.pipeline > 1 and found.micro_batch > 1:
        yield (
            f"train.micro_batch_size is {found.micro_batch}, and the stages of a pipeline pass on "
            "rows of one sequence, which is a pack of many documents. Set it to 1."
        )
    share = found.micro_batch * found.data
    if found.global_batch % share:
        yield (
            f"train.global_batch_size {found.global_batch} is no multiple of micro batch "
            f"{found.micro_batch} x DP {found.data} = {share}. "
            f"Set train.global_batch_size to {_nearest(found.global_batch, share)}."
        )


def _nearest(value: int, unit: int) -> str:
    below = value - value % unit
    return f"{below} or {below + unit}" if below else f"{unit}"


def _divisors(value: int) -> str:
    return ", ".join(str(one) for one in range(1, value + 1) if not value % one)
