"""What can be known of an image processor without loading it; the rest is in training/vision."""

import json

import pytest

from factory.data.encoding import images
from factory.errors import SpecError

SETTINGS = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16}


def write(folder, name, content):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_the_identity_is_of_the_settings_wherever_they_stand(tmp_path):
    alone = write(tmp_path / "alone", images.FILE, SETTINGS)
    joined = write(tmp_path / "joined", images.JOINED, {"image_processor": SETTINGS, "video": 1})
    assert images.identity(alone) == images.identity(joined)
    other = write(tmp_path / "other", images.FILE, SETTINGS | {"patch_size": 14})
    assert images.identity(other) != images.identity(alone)


def test_what_comes_first_for_transformers_counts(tmp_path):
    both = write(tmp_path / "both", images.FILE, SETTINGS | {"patch_size": 14})
    before = images.identity(both)
    write(both, images.JOINED, {"image_processor": SETTINGS})
    assert images.identity(both) != before


def test_a_model_without_one_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"no image processor.*nothing is fetched"):
        images.identity(write(tmp_path / "text", images.JOINED, {"processor_class": "X"}))


def test_settings_that_are_no_json_are_refused(tmp_path):
    folder = write(tmp_path / "torn", images.FILE, SETTINGS)
    (folder / images.FILE).write_text("{", encoding="utf-8")
    with pytest.raises(SpecError, match="is not JSON"):
        images.identity(folder)
