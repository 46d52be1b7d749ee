"""Vision step: the forward step of models that see images, for packs with and without any.

Bridge's `vlm_step` takes packs as our loader makes them; `qwen3_vl_step` packs by itself. A batch
carries its images as `pixel_values` and `image_grid_thw` and its positions in three coordinates, so
that nothing is worked out from token ids on the GPU.
"""

from typing import Any

import torch
from megatron.bridge.training import vlm_step
from megatron.bridge.training.state import GlobalState
from megatron.bridge.training.utils.visual_inputs import GenericVisualInputs
from megatron.core.utils import unwrap_model


def sees(config: Any) -> bool:
    """Whether a model provider of Bridge makes a model that sees images."""
    return getattr(config, "vision_config", None) is not None


class _Batches:
    """The batches of a loader, with their images where Bridge looks for them."""

    def __init__(self, data_iterator: Any) -> None:
        self.data_iterator = data_iterator
        self.images = False

    def __iter__(self) -> "_Batches":
        return self

    def __next__(self) -> dict[str, Any]:
        batch: dict[str, Any] = next(self.data_iterator)
        visual = GenericVisualInputs(
            pixel_values=batch.get("pixel_values"), image_grid_thw=batch.get("image_grid_thw")
        )
        self.images = visual.pixel_values is not None
        return {**batch, "visual_inputs": visual}


def forward_step(
    state: GlobalState, data_iterator: Any, model: Any, return_schedule_plan: bool = False
) -> tuple[Any, Any]:
    """One micro-batch forward.

    A micro-batch without an image sends one blank square through the vision tower, times zero.
    Its parameters then have a gradient in every micro-batch, which the overlapped reduction of
    gradients asks for, and neither loss nor gradients change.
    """
    batches = _Batches(data_iterator)
    output, loss_function = vlm_step.forward_step(state, batches, model, return_schedule_plan)
    if not batches.images and not return_schedule_plan:
        bare: Any = unwrap_model(model)
        if bare.vision_model is not None:  # it is on the first pipeline stage only
            output = _with_blank(output, bare.vision_model)
    return output, loss_function


def _with_blank(output: torch.Tensor, tower: Any) -> torch.Tensor:
    """The output, whose gradient reaches every trained parameter of the tower as zeros."""
    parameters = [one for one in tower.parameters() if one.requires_grad]
    if not parameters:
        return output
    config = tower.config
    values = config.in_channels * config.temporal_patch_size * config.patch_size**2
    side = config.spatial_merge_size
    pixels = torch.zeros(side**2, values, dtype=parameters[0].dtype, device=parameters[0].device)
    grid = torch.tensor([[1, side, side]], device=parameters[0].device)
    embedded, deepstack = tower(hidden_states=pixels, grid_thw=grid)
    return output + 0 * sum(one.sum() for one in (embedded, *deepstack))
