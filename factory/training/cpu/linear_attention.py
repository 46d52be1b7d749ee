"""The kernels of Qwen3.5's linear attention, in plain torch: what `flash-linear-attention` has.

A gated delta rule over a short causal convolution. Both begin anew in every document of a pack.
The rule itself is core's own, which it uses where results must not depend on the order of sums.
Shapes: B = batch, S = positions, C = channels, W = width of the convolution.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def l2norm(x: Tensor, dim: int = -1, eps: float = 1e-6) -> Tensor:
    """Each vector divided by its length."""
    return x * torch.rsqrt(x.square().sum(dim=dim, keepdim=True) + eps)


def causal_conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None, *, cu_seqlens: Tensor | None, **_: object
) -> tuple[Tensor, None]:
    """Each channel of `x` [B, S, C] with its filter of `weight` [C, W], and SiLU behind it."""
    channels, width = weight.shape
    parts = [
        functional.conv1d(
            functional.pad(part.transpose(1, 2), (width - 1, 0)),
            weight[:, None],
            bias,
            groups=channels,
        ).transpose(1, 2)
        for part in _documents(x, cu_seqlens)
    ]
    return functional.silu(torch.cat(parts, dim=1)), None


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    g: Tensor,
    beta: Tensor,
    cu_seqlens: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention of linear cost, document by document; every tensor is [B, S, ...]."""
    from megatron.core.ssm.gated_delta_net.common import torch_chunk_gated_delta_rule

    documents = zip(*(_documents(x, cu_seqlens) for x in (q, k, v, g, beta)), strict=True)
    parts = [torch_chunk_gated_delta_rule(*document, **options)[0] for document in documents]
    return torch.cat(parts, dim=1), None


def _documents(x: Tensor, cu_seqlens: Tensor | None) -> list[Tensor]:
    if cu_seqlens is None:
        return [x]
    bounds: list[int] = cu_seqlens.tolist()
    return [x[:, start:stop] for start, stop in pairwise(bounds) if stop > start]
