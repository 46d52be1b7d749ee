"""Pictures: sheets and thumbnails of stored images, whatever their mode, small enough to keep."""

import base64
import hashlib
import io
import random
from pathlib import Path

import pytest
from PIL import Image

from factory.control import pictures
from factory.data import table
from factory.data.image_facts import image_facts

type Rows = list[dict[str, object]]


def noise(width: int, height: int, mode: str = "RGB", seed: int = 0) -> bytes:
    """A picture that no compression makes small."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    data = random.Random(seed).randbytes(width * height * bands)
    file = io.BytesIO()
    kind = "JPEG" if mode == "CMYK" else "PNG"
    Image.frombytes(mode, (width, height), data).save(file, kind)
    return file.getvalue()


def row(data: bytes, **meta: str) -> dict[str, object]:
    opened = Image.open(io.BytesIO(data))
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "format": str(opened.format).lower(),
        "width": opened.width,
        "height": opened.height,
        "mode": opened.mode,
        "meta": sorted(meta.items()),
        "data": data,
    }


def write(directory: Path, *shards: Rows) -> Path:
    directory.mkdir()
    for number, rows in enumerate(shards):
        with table.Writer(table.file(directory, number), table.IMAGES) as writer:
            for one in rows:
                writer.add(one)
    return directory


def opened(markdown: str) -> Image.Image:
    encoded = markdown.partition("data:image/jpeg;base64,")[2].rstrip(")")
    return Image.open(io.BytesIO(base64.b64decode(encoded)))


@pytest.mark.parametrize("shards", [[], [[]]], ids=["no-table", "empty-table"])
def test_nothing(tmp_path: Path, shards: list[Rows]) -> None:
    directory = write(tmp_path / "images", *shards)
    assert pictures.sheet(directory) == ""
    assert pictures.thumbnails(directory, {"ab"}) == {}
    assert image_facts(directory) is None
    assert pictures.sheet(tmp_path / "nowhere") == ""


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "CMYK"])
def test_every_mode(tmp_path: Path, mode: str) -> None:
    data = noise(300, 20, mode)
    directory = write(tmp_path / "images", [row(data)])
    name = hashlib.sha256(data).hexdigest()
    shown = pictures.thumbnails(directory, {name, "missing"})
    assert list(shown) == [name]
    assert opened(shown[name]).size == (144, 10)
    assert opened(pictures.sheet(directory)).mode == "RGB"


def test_a_sheet_of_noise_is_small_and_always_the_same(tmp_path: Path) -> None:
    rows = [row(noise(200, 200, seed=seed)) for seed in range(30)]
    one = pictures.sheet(write(tmp_path / "one", rows[:10], rows[10:]))
    other = pictures.sheet(write(tmp_path / "other", rows[::-1]))
    assert one == other
    assert len(one) < 1.4 * pictures.SHEET_BYTES
    assert one.startswith("![18 images of the set]")


def test_facts(tmp_path: Path) -> None:
    small, large = noise(4, 9, "L"), noise(30, 2, "RGB")
    first = [row(small, Modality="CT"), row(large)]
    found = image_facts(write(tmp_path / "images", first, [row(small, Modality="CT")]))
    assert found is not None
    assert found.facts() == {
        "count": 2,
        "narrowest": 4,
        "widest": 30,
        "lowest": 2,
        "highest": 9,
        "formats": {"png": 2},
        "modes": {"L": 1, "RGB": 1},
        "modalities": {"CT": 1},
    }
