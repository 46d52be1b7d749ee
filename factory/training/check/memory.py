"""Memory: an estimate of what one GPU holds, for the pipeline stage that holds most.

Weights and optimizer: 2 bytes of bf16 weights and 4 of fp32 gradients a parameter, and 12 of master
weights and moments, divided among data-parallel ranks by the distributed optimizer (Megatron-LM,
`training/theoretical_memory_usage.py`). Activations: what each layer keeps for its backward pass,
after Korthikanti et al. 2022 (arXiv 2205.05198), table 2, with attention that keeps no scores,
grouped queries and experts put in. It was never measured on a GPU: read it to see what cannot fit.
"""

from dataclasses import dataclass
from typing import Any

from factory.training.check.layout import Layout
from factory.training.check.parameters import Layer, Parameters

BF16, FP32 = 2, 4
OPTIMIZER_BYTES = 12
"""Of a trained parameter: master weight and two moments, in fp32."""

OTHER_BYTES = 6 * 2**30
"""CUDA's context, NCCL's buffers, workspaces and fragmentation: assumed, not computed."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on the fullest GPU."""

    stage: int
    """Which pipeline stage that is, from 0."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    other: int = OTHER_BYTES

    @property
    def total(self) -> int:
        """All of it."""
        held = self.weights + self.gradients + self.optimizer
        return held + self.activations + self.logits + self.other


def memory(config: Any, counted: Parameters, found: Layout) -> Memory:
    """The estimate for the fullest stage; the layout must be a valid one."""
    stages = [_stage(at, config, counted, found) for at in range(found.pipeline)]
    return max(stages, key=lambda one: one.total)


def _stage(at: int, config: Any, counted: Parameters, found: Layout) -> Memory:
    model = config.model
    each = found.layers // found.pipeline
    layers = counted.layers[at * each : (at + 1) * each]
    last = at == found.pipeline - 1
    if last:
        layers = (*layers, *counted.prediction)
    dense = sum(one.attention for one in layers) / found.tensor
    dense += sum(one.replicated for one in layers)
    edges = counted.embedding + counted.vision if at == 0 else 0
    if last:
        edges += counted.head or (counted.embedding if found.pipeline > 1 else 0)
    dense += edges / found.tensor
    experts = sum(one.experts for one in layers) / (found.expert_tensor * found.expert)
    if not found.experts:
        dense, experts = dense + experts, 0.0
    spread = config.ddp.use_distributed_optimizer
    optimizer = OPTIMIZER_BYTES * (
        dense / (found.data * found.context if spread else 1)
        + experts / (found.expert_data if spread else 1)
    )
    waiting = min(max(1, found.micro_batches), found.pipeline - at)
    tokens = found.sequence * found.micro_batch // found.context
    return Memory(
        stage=at,
        weights=round(BF16 * (dense + experts)),
        gradients=round(FP32 * (dense + experts)),
        optimizer=round(optimizer),
        activations=round(tokens * _kept(model, layers, found, waiting)),
        logits=round(tokens * (BF16 + FP32) * model_vocabulary(config) / found.tensor)
        if last
        else 0,
    )


def model_vocabulary(config: Any) -> int:
    """Entries of the embedding; small recipes take them from their tokenizer."""
    return config.model.vocab_size or config.tokenizer.vocab_size or 0


def _kept(model: Any, layers: tuple[Layer, ...], found: Layout, waiting: int) -> float:
    """Bytes a token, of all micro-batches that wait for their backward pass."""
    hidden: int = model.hidden_size
    shared = found.tensor if found.sequence_parallel else 1
    full = _of_layer(model, found)
    if model.recompute_granularity == "full":
        # Each layer keeps what it was given; one at a time is computed again.
        return waiting * len(layers) * BF16 * hidden / shared + full
    return waiting * len(layers) * full


def _of_layer(model: Any, found: Layout) -> float:
    """Bytes a token that a layer keeps, on one tensor-parallel GPU."""
    hidden: int = model.hidden_size
    shared = found.tensor if found.sequence_parallel else 1
    channels: int = model.kv_channels or hidden // model.num_attention_heads
    queries = channels * model.num_attention_heads
    keys = channels * found.query_groups
    wide = 2 if model.gated_linear_unit else 1
    replicated = 4 * hidden  # what both norms were given, and what they gave
    attention = 2 * queries + 2 * keys  # queries, keys, values, and what attention gave
    if model.num_moe_experts:
        one = 2 * hidden + (wide + 1) * model.moe_ffn_hidden_size  # given, projected, given back
        routed = model.moe_router_topk * one / found.expert_tensor
        inner = (wide + 1) * (model.moe_shared_expert_intermediate_size or 0)
    else:
        routed, inner = 0.0, (wide + 1) * model.ffn_hidden_size
    if found.experts and found.sequence_parallel and found.expert_tensor == 1:
        routed /= found.tensor  # each GPU of a tensor-parallel group routes its own share of tokens
    return BF16 * (replicated / shared + (attention + inner) / found.tensor + routed)
