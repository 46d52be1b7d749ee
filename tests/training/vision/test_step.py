"""The forward step on packs with and without images."""

from typing import Any

import numpy as np
import pytest

from tests.training.vision import documents, tiny
from tests.training.vision.conftest import built

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*tp_group is None:DeprecationWarning"),  # Bridge's mergers
]


def batch(*pack: documents.Document) -> dict[str, Any]:
    """A pack as the loader makes it."""
    import torch

    made = documents.inputs(pack)
    bounds = made["packed_seq_params"].cu_seqlens_q
    longest = torch.tensor(made["packed_seq_params"].max_seqlen_q, dtype=torch.int32)

    def row(name: str, kind: Any) -> Any:
        parts = [getattr(one.sequence, name) for one in pack]
        return torch.tensor(np.concatenate(parts), dtype=kind)[None]

    return {
        "tokens": made["input_ids"],
        "position_ids": made["position_ids"],
        "labels": row("labels", torch.long),
        "loss_mask": row("loss_mask", torch.float32),
        "cu_seqlens_q": bounds,
        "cu_seqlens_kv": bounds,
        "max_seqlen_q": longest,
        "max_seqlen_kv": longest,
        **documents.shown(pack),
    }


@pytest.fixture(scope="module")
def state(hardware):
    from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config
    from megatron.bridge.training.state import GlobalState

    made = GlobalState()
    made.cfg = vanilla_gpt_pretrain_config()
    return made


def step(state, pair, *pack):
    """Loss of a pack, summed, and its gradients by parameter."""
    from factory.training.vision_step import forward_step

    pair.model.zero_grad()
    output, loss_function = forward_step(state, iter([batch(*pack)]), pair.model)
    loss, tokens, _ = loss_function(output)
    loss.backward()
    gradients = {name: one.grad for name, one in pair.model.named_parameters()}
    return loss.detach(), tokens, gradients


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_loss_of_a_pack_is_that_of_its_documents(state, pairs, kind):
    pair = pairs[kind]
    pack = [pair.document(number, images) for number, images in enumerate((1, 0, 2))]
    loss, tokens, gradients = step(state, pair, *pack)
    alone = [step(state, pair, one) for one in pack]
    assert tokens == sum(one[1] for one in alone) == sum(d.sequence.loss_mask.sum() for d in pack)
    assert abs(loss - sum(one[0] for one in alone)) < 1e-4 * loss
    for name, gradient in gradients.items():
        expected = sum(one[2][name] for one in alone)
        assert (gradient - expected).abs().max() <= 1e-4 * expected.abs().max() + 1e-7, name


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_without_an_image_the_vision_tower_has_gradients_of_zero(state, pairs, kind):
    """None at all would hang or fail where the reduction of gradients overlaps the backward."""
    pair = pairs[kind]
    text = pair.document(0, 0)
    loss, _, gradients = step(state, pair, text)
    seen = {name: one for name, one in gradients.items() if name.startswith("vision_model.")}
    assert len(seen) > 30
    assert all(one is not None and not one.any() for one in seen.values())
    pair.model.zero_grad()
    made = batch(text)
    output = pair.model(
        made["tokens"],
        position_ids=made["position_ids"],
        labels=made["labels"],
        loss_mask=made["loss_mask"],
        packed_seq_params=documents.inputs([text])["packed_seq_params"],
    )
    assert (output * made["loss_mask"]).sum() == loss


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_frozen_tower_is_not_run_for_nothing(state, pairs, kind):
    pair = pairs[kind]
    tower = pair.model.vision_model
    tower.requires_grad_(False)
    try:
        _, _, gradients = step(state, pair, pair.document(0, 0))
    finally:
        tower.requires_grad_(True)
    assert all((one is None) == name.startswith("vision_") for name, one in gradients.items())


def test_a_reduction_that_overlaps_the_backward_pass_needs_that(state, pairs):
    """Megatron's, as on GPUs: it fails with Bridge's own step, and not with ours."""
    from megatron.bridge.training import vlm_step
    from megatron.core.distributed import DistributedDataParallelConfig

    from factory.training import vision_step

    pair = pairs["qwen3_vl"]
    overlapping = DistributedDataParallelConfig(overlap_grad_reduce=True, bucket_size=10_000)
    _, model = built(pair.folder, ddp_config=overlapping)

    def reduced(step: Any, images: int) -> None:
        model.zero_grad_buffer()
        made = {**batch(pair.document(1, images)), "visual_inputs": None}
        output, loss_function = step.forward_step(state, iter([made]), model)
        loss_function(output)[0].backward()
        model.finish_grad_sync()

    reduced(vision_step, 1)
    reduced(vision_step, 0)
    with pytest.raises(AssertionError, match="has not been issued for this bucket"):
        reduced(vlm_step, 0)
