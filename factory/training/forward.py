"""Forward: Bridge's own step for text, which also reports how many tokens carried loss."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from megatron.bridge.training import gpt_step
from megatron.bridge.training.state import GlobalState

TOKENS = "loss tokens"
"""Key in the loss report: tokens with loss in one micro-batch, averaged over all of them."""


def forward_step(
    state: GlobalState, data_iterator: Iterable[Any], model: Any, return_schedule_plan: bool = False
) -> tuple[torch.Tensor, Any]:
    """One micro-batch forward; the loss function runs where Megatron calls it."""
    output, loss_function = gpt_step.forward_step(state, data_iterator, model, return_schedule_plan)
    return output, partial(_with_tokens, loss_function)


def _with_tokens(loss_function: Any, output: torch.Tensor) -> tuple[Any, Any, dict[str, Any]]:
    loss, tokens, report = loss_function(output)
    # Bridge sums pairs over micro-batches and data-parallel ranks and divides one by the other.
    pair = torch.stack([tokens.detach().float().sum(), tokens.new_ones((), dtype=torch.float32)])
    return loss, tokens, {**report, TOKENS: pair}
