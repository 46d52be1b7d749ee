"""Cost: GPU-hours of a token budget, from the arithmetic of a token and a share of the GPU's peak.

A forward pass does 2 operations for each parameter that a token is multiplied with, a backward pass
4; attention does 2 products of each query with the keys before it, half of a full square. Padding
and images are not counted. Recomputing costs time, not model operations.
"""

from typing import Any

from factory.training.check.gpus import Gpu
from factory.training.check.layout import Layout
from factory.training.check.parameters import Parameters, linear_layers

MFU = 0.2
"""Share of the peak in bf16 that training reaches. Megatron-Bridge's performance table of 26.04
gives 20.8% for Qwen3 30B-A3B and 25.6% for 235B-A22B on H100, both in FP8 with balanced routing."""

BACKWARD_AND_FORWARD = 6


def flops_per_token(model: Any, counted: Parameters, found: Layout) -> float:
    """Operations of training on one token of the language model."""
    channels: int = model.kv_channels or model.hidden_size // model.num_attention_heads
    width = channels * model.num_attention_heads
    attending = found.layers - sum(linear_layers(model))
    # Two products (with keys, with values) of 2 operations, over half a sequence, three passes.
    attention = 2 * 2 * width * found.sequence / 2 * 3 * attending
    extra = sum(one.attention + one.replicated + one.active for one in counted.prediction)
    if counted.prediction:
        extra += len(counted.prediction) * (counted.head or counted.embedding)
    return BACKWARD_AND_FORWARD * (counted.active + extra) + attention


def gpu_hours(tokens: float, per_token: float, gpu: Gpu, share: float) -> float:
    """Hours times GPUs for so many tokens."""
    return tokens * per_token / (gpu.bf16_flops * share) / 3600
