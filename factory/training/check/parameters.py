"""Parameters: how many, by how Megatron divides them among GPUs. Counted from the dimensions.

A test compares the counts with those of the published models' own code. h = hidden size, q = heads
times channels of queries, k = the same of keys and values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME_TOLERANCE = 0.02
"""How far a count may be from the one in the model's name to confirm the dimensions behind it."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Parameters of one transformer layer."""

    attention: int
    """Divided among tensor-parallel GPUs; a shared expert is counted with it."""

    replicated: int
    """Norms and router, whole on each GPU."""

    experts: int
    """All of the routed experts, or the MLP of a dense layer."""

    active: int
    """Those of `experts` that work on a token."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of a model."""

    layers: tuple[Layer, ...]
    prediction: tuple[Layer, ...]
    """The layers that predict further tokens; on the last pipeline stage."""

    embedding: int
    head: int
    """0 where it is the embedding's."""

    norm: int
    vision: int

    @property
    def language(self) -> int:
        """The language model as it is published: without further-token prediction."""
        held = sum(one.attention + one.replicated + one.experts for one in self.layers)
        return held + self.embedding + self.head + self.norm

    @property
    def total(self) -> int:
        """The published model: language and vision."""
        return self.language + self.vision

    @property
    def active(self) -> int:
        """What a token is multiplied with; the embedding is looked up, not multiplied."""
        held = sum(one.attention + one.replicated + one.active for one in self.layers)
        return held + (self.head or self.embedding) + self.norm


def parameters(model: Any) -> Parameters:
    """The parameters of a Bridge model provider."""
    vocabulary: int = model.vocab_size or 0
    untied = not model.share_embeddings_and_output_weights
    linear: list[int] = linear_layers(model)
    layers = tuple(_layer(model, linear=bool(one)) for one in linear)
    return Parameters(
        layers=layers,
        prediction=tuple(_layer(model, linear=False) for _ in range(model.mtp_num_layers or 0)),
        embedding=vocabulary * model.hidden_size,
        head=vocabulary * model.hidden_size if untied else 0,
        norm=_norm_size(model) * model.hidden_size,
        vision=_vision(getattr(model, "vision_config", None)),
    )


def linear_layers(model: Any) -> list[int]:
    """1 for each layer with linear attention, 0 for one with full attention."""
    frequency = getattr(model, "linear_attention_freq", None)
    if isinstance(frequency, list):
        return [int(one) for one in frequency]  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(frequency, int):
        return [int(bool((at + 1) % frequency)) for at in range(model.num_layers)]
    return [0] * model.num_layers


def name_says(name: str) -> Mapping[str, int]:
    """`total` and `active` parameters in a name such as `Qwen3-VL-30B-A3B`, where it has them."""
    found = re.search(r"(\d+(?:\.\d+)?)B(?:-A(\d+(?:\.\d+)?)B)?", name)
    if found is None:
        return {}
    values = {"total": found[1], "active": found[2]}
    return {key: round(float(value) * 1e9) for key, value in values.items() if value}


def confirmed(counted: int, said: int) -> bool:
    """Whether a count is the one that a name says, within the tolerance."""
    return abs(counted - said) <= NAME_TOLERANCE * said


def _layer(model: Any, *, linear: bool) -> Layer:
    hidden: int = model.hidden_size
    attention, norms = _linear_attention(model) if linear else _full_attention(model)
    norms += 2 * hidden * _norm_size(model)
    wide = 3 if model.gated_linear_unit else 2
    if not model.num_moe_experts:
        dense = wide * hidden * model.ffn_hidden_size
        return Layer(attention=attention, replicated=norms, experts=dense, active=dense)
    one = wide * hidden * model.moe_ffn_hidden_size
    shared: int = model.moe_shared_expert_intermediate_size or 0
    gate = hidden if shared and model.moe_shared_expert_gate else 0
    return Layer(
        attention=attention + wide * hidden * shared,
        replicated=norms + hidden * model.num_moe_experts + gate,
        experts=one * model.num_moe_experts,
        active=one * model.moe_router_topk,
    )


def _full_attention(model: Any) -> tuple[int, int]:
    """Of a layer that attends: its projections, and its norms of queries and keys."""
    channels: int = model.kv_channels or model.hidden_size // model.num_attention_heads
    queries = channels * model.num_attention_heads
    keys = channels * (model.num_query_groups or model.num_attention_heads)
    gated = 2 if getattr(model, "attention_output_gate", False) else 1
    projections = model.hidden_size * (gated * queries + 2 * keys + queries)
    return projections, 2 * channels if model.qk_layernorm else 0


def _linear_attention(model: Any) -> tuple[int, int]:
    """Of a layer with a gated delta rule: projections, convolution, decays; and its norm."""
    keys = model.linear_key_head_dim * model.linear_num_key_heads
    values = model.linear_value_head_dim * model.linear_num_value_heads
    mixed = 2 * keys + values
    into = model.hidden_size * (mixed + values + 2 * model.linear_num_value_heads)
    decays = 2 * model.linear_num_value_heads
    convolution = mixed * model.linear_conv_kernel_dim
    return into + convolution + decays + values * model.hidden_size, model.linear_value_head_dim


def _norm_size(model: Any) -> int:
    """Parameters of a norm for each channel: LayerNorm has a bias."""
    return 1 if model.normalization == "RMSNorm" else 2


def _vision(config: Any) -> int:
    """The vision tower of the Qwen3-VL family, with its mergers."""
    if config is None:
        return 0
    hidden: int = config.hidden_size
    wide: int = config.intermediate_size
    merged = hidden * config.spatial_merge_size**2
    pixels = config.in_channels * config.temporal_patch_size * config.patch_size**2
    patches = pixels * hidden + hidden + config.num_position_embeddings * hidden
    block = 4 * hidden + 4 * (hidden * hidden + hidden) + 2 * hidden * wide + wide + hidden
    merger = merged * merged + merged + merged * config.out_hidden_size + config.out_hidden_size
    deep = len(getattr(config, "deepstack_visual_indexes", None) or ())
    return patches + config.depth * block + merger * (1 + deep) + 2 * hidden + deep * 2 * merged
