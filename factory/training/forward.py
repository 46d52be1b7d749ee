"""Forward: Bridge's own steps for text and for images, with the number of tokens that carry loss.

Batches are packs, so both set `PackedSeqParams` from their `cu_seqlens`. The loss is a sum over
tokens, which Megatron divides by the tokens with loss in the global batch: it depends neither on
how documents were packed nor on how packs were shared among ranks.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from megatron.bridge.training import gpt_step
from megatron.bridge.training.state import GlobalState

from factory.training import vision_step

TOKENS = "loss tokens"
"""Key in the loss report: tokens with loss in one micro-batch, averaged over all of them."""


def step_of(config: Any) -> Callable[..., tuple[torch.Tensor, Any]]:
    """The forward step for the model of a configuration."""
    inner: Any = vision_step if vision_step.sees(config.model) else gpt_step

    def forward_step(
        state: GlobalState,
        data_iterator: Iterable[Any],
        model: Any,
        return_schedule_plan: bool = False,
    ) -> tuple[torch.Tensor, Any]:
        """One micro-batch forward; the loss function runs where Megatron calls it."""
        output, loss = inner.forward_step(state, data_iterator, model, return_schedule_plan)
        return output, partial(_with_tokens, loss)

    return forward_step


def _with_tokens(loss_function: Any, output: torch.Tensor) -> tuple[Any, Any, dict[str, Any]]:
    loss, tokens, report = loss_function(output)
    # Bridge sums pairs over micro-batches and data-parallel ranks and divides one by the other.
    pair = torch.stack([tokens.detach().float().sum(), tokens.new_ones((), dtype=torch.float32)])
    return loss, tokens, {**report, TOKENS: pair}
