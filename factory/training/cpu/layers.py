"""Transformer Engine's layers, in plain torch, under Transformer Engine's parameter names.

The same layer specification and the same checkpoint tensors as on a GPU; the arithmetic is slower
and not bit-equal. Class names matter: Bridge's mappings read how a tensor is sharded from them.
Shapes: S = sequence, B = batch, T = packed tokens, H = heads, D = head dimension.
"""

import importlib
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import torch
from megatron.core.models.backends import LocalSpecProvider
from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
from torch import Tensor
from torch.nn import functional

from factory.training.cpu import linear_attention


class CpuNorm(torch.nn.Module):
    """LayerNorm or RMSNorm, as the configuration says."""

    def __init__(self, config: Any, hidden_size: int, eps: float = 1e-5, **_: object) -> None:
        super().__init__()
        self.eps = eps
        self.rms = config.normalization == "RMSNorm"
        self.zero_centered = config.layernorm_zero_centered_gamma
        start = torch.zeros if self.zero_centered else torch.ones
        self.weight = torch.nn.Parameter(start(hidden_size, dtype=config.params_dtype))
        if self.rms:
            self.register_parameter("bias", None)
        else:
            self.bias = torch.nn.Parameter(torch.zeros(hidden_size, dtype=config.params_dtype))
        for parameter in self.parameters():
            setattr(parameter, "sequence_parallel", config.sequence_parallel)  # noqa: B010

    def forward(self, x: Tensor) -> Tensor:
        """Normalize over the last dimension."""
        return _norm(x, self.weight, self.bias, self)


class CpuLayerNormColumnParallelLinear(ColumnParallelLinear):
    """A norm and the linear layer after it, in one module as Transformer Engine has it."""

    def __init__(self, input_size: int, output_size: int, *, config: Any, **options: Any) -> None:
        super().__init__(input_size, output_size, config=config, **options)
        norm = CpuNorm(config, input_size, config.layernorm_epsilon)
        self.eps, self.rms, self.zero_centered = norm.eps, norm.rms, norm.zero_centered
        self.layer_norm_weight = norm.weight
        self.layer_norm_bias = norm.bias

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Normalize, then project."""
        normed = _norm(x, self.layer_norm_weight, self.layer_norm_bias, self)
        return super().forward(normed, *args, **kwargs)

    def sharded_state_dict(
        self,
        prefix: str = "",
        sharded_offsets: tuple[Any, ...] = (),
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The linear layer's tensors and the norm's, which every tensor-parallel rank has whole."""
        from megatron.core.transformer.utils import make_sharded_tensors_for_checkpoint

        state = self.state_dict(prefix="", keep_vars=True)
        return make_sharded_tensors_for_checkpoint(
            state, prefix, {"weight": 0, "bias": 0}, sharded_offsets
        )


class CpuDotProductAttention(torch.nn.Module):
    """Causal attention over a padded batch, or over packed documents by their boundaries.

    Padding must be on the right: no mask is read, and a causal model never looks right.
    """

    def __init__(self, config: Any, *_: object, softmax_scale: float | None = None, **__: object):
        super().__init__()
        self.scale = softmax_scale
        self.dropout = config.attention_dropout

    def forward(  # noqa: PLR0913, the signature is Megatron's
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        attn_mask_type: Any = None,
        attention_bias: Tensor | None = None,
        packed_seq_params: Any = None,
        **_: object,
    ) -> Tensor:
        """Attend; the heads come back joined in the last dimension."""
        causal = attn_mask_type is None or "causal" in attn_mask_type.name
        if packed_seq_params is None:
            return self._batch(query, key, value, causal)
        bounds = packed_seq_params.cu_seqlens_q_padded
        if bounds is None:
            bounds = packed_seq_params.cu_seqlens_q
        ends = bounds.tolist()
        parts = [
            self._batch(
                query[start:end, None], key[start:end, None], value[start:end, None], causal
            ).squeeze(1)
            for start, end in pairwise(ends)
            if end > start
        ]
        return torch.cat(parts)

    def _batch(
        self, query_SBHD: Tensor, key_SBHD: Tensor, value_SBHD: Tensor, causal: bool
    ) -> Tensor:
        query, key, value = (x.permute(1, 2, 0, 3) for x in (query_SBHD, key_SBHD, value_SBHD))
        out_BHSD = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=causal,
            scale=self.scale,
            enable_gqa=True,
        )
        return out_BHSD.permute(2, 0, 1, 3).flatten(2)


class CpuSpecProvider(LocalSpecProvider):
    """Which module stands in for which; what a Transformer Engine specification asks for."""

    def linear(self) -> type:
        """An unfused linear layer."""
        return ColumnParallelLinear

    def fuse_layernorm_and_linear(self) -> bool:
        """As Transformer Engine: the norm lives in the linear layer after it."""
        return True

    def column_parallel_layer_norm_linear(self) -> type:
        """The norm and linear layer in one."""
        return CpuLayerNormColumnParallelLinear

    def layer_norm(
        self, rms_norm: bool = False, for_qk: bool = False, has_residual: bool = False
    ) -> Any:
        """A norm of its own."""
        return CpuNorm

    def core_attention(self) -> type:
        """Attention proper."""
        return CpuDotProductAttention


def _norm(x: Tensor, weight: Tensor, bias: Tensor | None, kind: Any) -> Tensor:
    scale = weight + 1 if kind.zero_centered else weight
    if kind.rms:
        return functional.rms_norm(x, (x.size(-1),), scale, kind.eps)
    return functional.layer_norm(x, (x.size(-1),), scale, bias, kind.eps)


def _on_cpu(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
    """What core makes of counts that it copies from the GPU; they are here already."""
    del record_stream
    return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor


def _specification(config: Any) -> CpuSpecProvider:
    del config
    return CpuSpecProvider()


_SPECIFICATIONS = {"TESpecProvider": CpuSpecProvider}
_MERGER = {
    "TENorm": CpuNorm,
    "TEColumnParallelLinear": ColumnParallelLinear,
    "TERowParallelLinear": RowParallelLinear,
}
"""What joins patches of an image into one token of the language model."""

STAND_INS: Mapping[str, Mapping[str, Any]] = {
    "megatron.core.models.gpt.gpt_layer_specs": _SPECIFICATIONS,
    "megatron.core.models.gpt.moe_module_specs": _SPECIFICATIONS,
    "megatron.core.models.gpt.experimental_attention_variant_module_specs": {
        "_get_backend_spec_provider": _specification
    },
    "megatron.core.ssm.gated_delta_net.common": {
        "HAVE_FLA": True,
        "l2norm": linear_attention.l2norm,
    },
    "megatron.core.ssm.gated_delta_net.gdn": {
        "causal_conv1d": linear_attention.causal_conv1d,
        "chunk_gated_delta_rule": linear_attention.chunk_gated_delta_rule,
    },
    "megatron.core.transformer.transformer_block": {"LayerNormImpl": CpuNorm},
    "megatron.core.transformer.moe.token_dispatcher": {"maybe_move_tensor_to_cpu": _on_cpu},
    "megatron.core.models.vision.vit_layer_specs": {
        "TELayerNormColumnParallelLinear": CpuLayerNormColumnParallelLinear,
        "TERowParallelLinear": RowParallelLinear,
        "TEDotProductAttention": CpuDotProductAttention,
    },
    "megatron.bridge.models.qwen_vl.modelling_qwen3_vl.model": _MERGER,
    "megatron.bridge.models.qwen_vl.qwen35_vl_provider": _MERGER,
}
"""Modules that name layers or kernels for GPUs, and what they get instead."""


@contextmanager
def replaced() -> Generator[None]:
    """Within: a model built from a Transformer Engine specification gets these layers."""
    with ExitStack() as stack:
        for name, stand_ins in STAND_INS.items():
            module = importlib.import_module(name)
            for attribute, stand_in in stand_ins.items():
                stack.enter_context(patch.object(module, attribute, stand_in))
        yield
