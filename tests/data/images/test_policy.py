"""What a dataset may declare about images, and that declaring it loads nothing heavy."""

import subprocess
import sys
from typing import Any

import pytest

from factory.data import Dataset, Git, Image, Images
from factory.data.images.image import content_hash
from factory.errors import DeclarationError
from factory.keys import public


@pytest.mark.parametrize(
    "values",
    [
        {"max_pixels": 0},
        {"max_pixels": 1.5},
        {"max_pixels": True},
        {"thumbnail": 8},
        {"tile": -1},
        {"level": -1},
        {"min_tissue": 1.5},
        {"min_tissue": float("nan")},
        {"window": (40, 0)},
        {"window": (float("inf"), 400)},
        {"window": (40,)},
        {"window": "lung"},
        {"burned_in_allowed": "us.dcm"},
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="images: "):
        Images(**values)


def test_the_policy_as_parameters_is_plain_and_sorted() -> None:
    value = Images(window=(40, 400), burned_in_allowed=["b", "a"]).as_dict()
    assert value["burned_in_allowed"] == ["a", "b"]
    assert value["window"] == [40, 400]


def test_a_dataset_takes_a_policy_or_none() -> None:
    source = Git(url="https://example.org/a", revision="0" * 40, rows="*.png")
    for images in (None, Images()):
        declared = Dataset(
            key=public("a"), license="MIT", source=source, clean=print, images=images
        )
        assert declared.images == images
    with pytest.raises(DeclarationError, match="images is 50"):
        Dataset(key=public("a"), license="MIT", source=source, clean=print, images=50)  # pyright: ignore[reportArgumentType]


def test_equal_bytes_are_the_same_image() -> None:
    def image(data: bytes, **meta: str) -> Image:
        return Image(content_hash(data), data, "jpeg", 1, 1, "L", meta)

    assert image(b"a", frame="1") == image(b"a")
    assert hash(image(b"a", frame="1")) == hash(image(b"a"))
    assert image(b"a") != image(b"b")
    assert image(b"a").extension == "jpg"
    assert "data=" not in repr(image(b"pixels"))


def test_a_declaration_loads_nothing_that_decodes() -> None:
    program = (
        "import sys, factory.data;"
        "print([n for n in ('PIL', 'pydicom', 'openslide', 'numpy', 'gdcm') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
