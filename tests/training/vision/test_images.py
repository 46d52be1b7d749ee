"""The model's own image processor: what it makes of an image, and how many tokens that takes."""

import io

import numpy as np
import pytest

from factory.errors import BadRow, SpecError
from tests.training.vision import tiny
from tests.training.vision.documents import conversation, document, picture

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(folder):
    return folder("qwen3_vl")


@pytest.fixture(scope="module")
def processor(model):
    from factory.data.encoding import images

    return images.load(model)


def test_an_image_that_fits_becomes_its_own_pixels_square_by_square(processor):
    from PIL import Image

    image = picture(96, 64, seed=1)
    found = processor.pixels(image.data)
    pixels = np.asarray(Image.open(io.BytesIO(image.data)), dtype=np.float32) / 255 * 2 - 1
    side, patch = tiny.MERGE, tiny.PATCH
    squares = pixels.reshape(2, side, patch, 3, side, patch, 3).transpose(0, 3, 1, 4, 6, 2, 5)
    expected = np.repeat(squares[..., None, :, :], 2, axis=-3).reshape(24, -1)
    assert tuple(found.grid) == (1, 4, 6)
    assert np.allclose(found.values, expected, atol=1e-6)


@pytest.mark.parametrize("size", [(96, 64), (40, 30), (31, 5), (1000, 700), (20, 120)])
def test_the_header_tells_how_many_tokens_an_image_takes(processor, size):
    found = processor.pixels(picture(*size, seed=2).data)
    tokens = processor.tokens(*size)
    assert tokens * tiny.MERGE**2 == found.grid.patches == len(found.values)
    assert tiny.SMALLEST <= tokens * (tiny.PATCH * tiny.MERGE) ** 2 <= tiny.LARGEST


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA"])
def test_grey_and_transparent_images_become_three_colours(processor, mode):
    from PIL import Image

    from factory.data.images.png import stored

    image = Image.open(io.BytesIO(picture(64, 64, seed=3).data)).convert(mode)
    found = processor.pixels(stored(image, {}).data)
    same = processor.pixels(stored(image.convert("RGB"), {}).data)
    assert np.array_equal(found.values, same.values)


def test_equal_images_give_equal_pixels_whatever_the_process_did_before(model, processor):
    from factory.data.encoding import images

    data = picture(333, 77, seed=4).data
    before = processor.pixels(data)
    processor.pixels(picture(64, 64, seed=5).data)
    after = images.load(model).pixels(data)
    assert before.grid == after.grid
    assert before.values.tobytes() == after.values.tobytes()
    assert images.load(model).identity == processor.identity == images.identity(model)


def test_a_ribbon_is_refused_with_a_reason_that_is_counted(processor):
    with pytest.raises(BadRow, match="shape"):
        processor.tokens(1000, 3)


def test_a_processor_that_announces_another_number_of_tokens_is_not_used(processor, monkeypatch):
    monkeypatch.setattr(processor.processor, "get_number_of_image_patches", lambda *_: 400)
    with pytest.raises(ValueError, match="makes 16 patches of an image for which it announces 400"):
        processor.pixels(picture(64, 64, seed=6).data)


def test_one_that_merges_no_patches_is_refused(tmp_path):
    from transformers import ViTImageProcessor

    from factory.data.encoding import images

    ViTImageProcessor().save_pretrained(tmp_path)
    with pytest.raises(SpecError, match="ViTImageProcessor"):
        images.load(tmp_path)


def test_nothing_of_an_image_is_ever_learned(model):
    from factory.data.encoding import load

    sequence = document(model, conversation(1, [picture(64, 64, 7), picture(96, 64, 8)])).sequence
    image = load(model).image
    assert image is not None
    assert [place.pad.stop - place.pad.start for place in sequence.images] == [4, 6]
    of_image = np.isin(sequence.labels, image.ids)
    assert of_image.sum() == 4 + 6 + 2 * 2
    assert not sequence.loss_mask[of_image].any()
    assert sequence.loss_mask.any()
