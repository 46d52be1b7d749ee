"""Qwen3-VL and Qwen3.5, dense and with experts, say what transformers says, packed or alone."""

import numpy as np
import pytest

from tests.training.vision import tiny

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*tp_group is None:DeprecationWarning"),  # Bridge's mergers
]

KINDS = pytest.mark.parametrize("kind", tiny.KINDS)
TEXT, IMAGES = 1e-6, 1e-4


@KINDS
@pytest.mark.parametrize("images", [0, 1, 2])
def test_logits_are_those_of_transformers(pairs, kind, images):
    pair = pairs[kind]
    document = pair.document(2, images)
    difference = (pair.logits(document) - pair.peer_logits(document)).abs().max()
    assert difference < (IMAGES if images else TEXT)


@KINDS
def test_images_differ_only_by_the_activation_of_their_mergers(pairs, kind, monkeypatch):
    """Transformers has the exact GELU there, Megatron the one with tanh."""
    from torch.nn import functional

    pair = pairs[kind]
    mergers = [one for one in pair.model.modules() if "PatchMerger" in type(one).__name__]
    assert len(mergers) == (1 if kind.startswith("qwen3_5") else 3)
    for merger in mergers:
        monkeypatch.setattr(merger, "activation_func", functional.gelu)
    document = pair.document(2, 2)
    assert (pair.logits(document) - pair.peer_logits(document)).abs().max() < TEXT


@KINDS
def test_what_is_seen_and_where_it_is_matters(pairs, kind):
    """The bounds of the other tests are far below what a wrong image or position would do."""
    from dataclasses import replace

    pair = pairs[kind]
    document = pair.document(2, 2)
    right = pair.logits(document)
    other = [one._replace(values=one.values[::-1].copy()) for one in document.pixels]
    assert (pair.logits(replace(document, pixels=tuple(other))) - right).abs().max() > 100 * IMAGES

    class Flat(type(document)):
        @property
        def positions(self):
            return np.tile(np.arange(len(self.sequence.tokens)), (3, 1))

    flat = Flat(document.sequence, document.pixels, document.merge)
    assert (pair.logits(flat) - right).abs().max() > 100 * IMAGES


@KINDS
def test_a_document_in_a_pack_is_as_alone(pairs, kind):
    pair = pairs[kind]
    pack = [pair.document(number, images) for number, images in enumerate((0, 1, 2, 1, 0))]
    together = pair.logits(*pack)
    alone = [pair.logits(document) for document in pack]
    start = 0
    for one in alone:
        assert (together[start : start + len(one)] - one).abs().max() < TEXT
        start += len(one)
    assert start == len(together)
    joined = pair.logits(*pack, torn=False)
    assert (joined[len(alone[0]) :] - together[len(alone[0]) :]).abs().max() > 100 * IMAGES


@KINDS
def test_an_export_gives_the_weights_back(pairs, kind):
    import torch
    from safetensors.torch import load_file

    pair = pairs[kind]
    weights = load_file(pair.folder / "model.safetensors")
    exported = dict(pair.bridge.export_hf_weights([pair.model], cpu=True, show_progress=False))
    assert exported.keys() == weights.keys()
    assert all(torch.equal(exported[name], weights[name]) for name in weights)


@KINDS
@pytest.mark.parametrize("images", [1, 2])
def test_positions_are_those_of_transformers(pairs, kind, images):
    import torch

    pair = pairs[kind]
    document = pair.document(1, images)
    tokens = torch.tensor(document.sequence.tokens, dtype=torch.long)[None]
    grids = torch.tensor([list(one.grid) for one in document.pixels])
    of_image = (tokens == pair.peer.config.image_token_id).int()
    theirs, _ = pair.peer.model.get_rope_index(tokens, of_image, grids)
    assert np.array_equal(theirs[:, 0].numpy(), document.positions)
