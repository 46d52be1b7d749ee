"""A model that sees images and its tokenizer must know the same images."""

from types import SimpleNamespace

import pytest

from factory.data.encoding import load
from factory.data.encoding.images import ImageProcessor
from factory.errors import SpecError
from factory.training.vision_tokens import IDS, agree
from tests.data.encoding import qwen_like

CUT = {"patch_size": 16, "temporal_patch_size": 2}
PROCESSOR = ImageProcessor(identity="made", merge=2, processor=SimpleNamespace(**CUT))


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    return load(qwen_like.write(tmp_path_factory.mktemp("tokenizer") / "qwen-like"))


def model(qwen, **changed):
    """A provider that knows the tokenizer's ids, and cuts images as the processor does."""
    start, pad, end = qwen.image.ids
    tower = SimpleNamespace(**CUT, spatial_merge_size=2)
    fields = {
        "vocab_size": qwen.size,
        "vision_start_token_id": start,
        "image_token_id": pad,
        "vision_end_token_id": end,
        "vision_config": tower,
    }
    return SimpleNamespace(**{**fields, **changed})


def test_a_model_that_knows_the_same_images_is_left_as_it_is(qwen):
    made = model(qwen)
    before = vars(made).copy()
    agree(made, qwen, PROCESSOR)
    assert vars(made) == before


def test_a_model_without_a_vocabulary_of_its_own_takes_the_tokenizers(qwen):
    made = model(qwen, vocab_size=None, **dict.fromkeys(IDS, 151_655))
    agree(made, qwen, PROCESSOR)
    assert [getattr(made, name) for name in IDS] == list(qwen.image.ids)
    assert made.vocab_size == qwen.size


def test_a_model_of_texts_with_a_tokenizer_of_texts_is_none_of_its_business(qwen):
    agree(SimpleNamespace(vocab_size=256), load("bytes"), None)


@pytest.mark.parametrize("name", IDS)
def test_another_models_tokens_are_refused_with_both_ids(qwen, name):
    made = model(qwen, **{name: 7})
    with pytest.raises(SpecError, match=rf"model\.{name} is 7, but qwen-like has \d+"):
        agree(made, qwen, PROCESSOR)


@pytest.mark.parametrize("name", [*CUT, "spatial_merge_size"])
def test_images_that_are_cut_otherwise_are_refused(qwen, name):
    made = model(qwen)
    setattr(made.vision_config, name, 14)
    with pytest.raises(SpecError, match=rf"{name} of the model is 14, but qwen-like has \d+"):
        agree(made, qwen, PROCESSOR)


def test_a_model_of_texts_is_not_given_images(qwen):
    with pytest.raises(SpecError, match="would read the places of images as words"):
        agree(SimpleNamespace(vocab_size=320), qwen, PROCESSOR)


def test_a_model_that_sees_images_needs_a_processor_and_tokens_for_them(qwen):
    with pytest.raises(SpecError, match="no image processor"):
        agree(model(qwen), qwen, None)
    with pytest.raises(SpecError, match="no tokens for images"):
        agree(model(qwen), load("tekken_240911"), PROCESSOR)
