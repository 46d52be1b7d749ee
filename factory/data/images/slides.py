"""Slides: thumbnails and tiles of whole-slide images, through OpenSlide.

Tiles lie on a grid from the upper left corner, numbered row by row from 1, and the last of a row
and column are filled up with the slide's background. A tile that shows too little tissue is
refused, so that it is counted; the numbers of the others do not depend on it. A pixel is tissue if
its colour channels differ by at least `COLOURED` of 255: stained tissue does, glass does not. Ink
of a pen does too, and unstained tissue does not.

Only the scan itself is read. The pictures beside it, of the label and of the whole glass, show
names, and of the properties only those in `PASSED_ON` reach `meta`.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from factory.data.images import png, reasons
from factory.data.images.image import Image
from factory.data.images.mute import muted
from factory.data.images.policy import Images
from factory.errors import BadRow

if TYPE_CHECKING:
    from openslide import OpenSlide
    from PIL import Image as Pixels

COLOURED = 20

PASSED_ON: Mapping[str, str] = {
    "openslide.vendor": "vendor",
    "openslide.objective-power": "objective_power",
    "openslide.mpp-x": "microns_per_pixel",
}
"""Properties that name nobody, and what `meta` calls them. The resolution is that of level 0."""


def thumbnail(path: Path, policy: Images) -> Image:
    """A slide made small.

    Raises:
        BadRow: it is no slide, is damaged, or has no resolution that may be read at once.
    """
    with _open(path) as slide, muted(), _refused_if_damaged():
        level = slide.get_best_level_for_downsample(max(slide.dimensions) / policy.thumbnail)
        width, height = slide.level_dimensions[level]
        if width * height > policy.max_pixels:
            raise BadRow(reasons.TOO_LARGE)
        pixels = slide.get_thumbnail((policy.thumbnail, policy.thumbnail))
        return png.stored(pixels.convert("RGB"), _said(slide) | {"part": "thumbnail"})


def tiles(path: Path, policy: Images) -> Iterator[Image | BadRow]:
    """Every place of the grid: its tile, or why there is none.

    Raises:
        BadRow: the file is no slide, is damaged, or has no such level.
    """
    if policy.tile**2 > policy.max_pixels:
        raise BadRow(reasons.TOO_LARGE)
    slide = _open(path)
    try:
        if policy.level >= slide.level_count:
            raise BadRow(reasons.NO_SUCH_LEVEL)
        width, height = slide.level_dimensions[policy.level]
        scale = slide.level_downsamples[policy.level]
        for y in range(0, height, policy.tile):
            for x in range(0, width, policy.tile):
                try:
                    yield _tile(slide, (round(x * scale), round(y * scale)), policy)
                except BadRow as refused:
                    if refused.reason == reasons.SLIDE_DAMAGED:  # it would fail from here on
                        slide.close()
                        slide = _open(path)
                    yield refused
    finally:
        slide.close()


def tissue(pixels: "Pixels.Image") -> float:
    """Share of the pixels of an RGB image that show tissue."""
    values = np.asarray(pixels)
    return float((values.max(axis=2) - values.min(axis=2) >= COLOURED).mean())


def _tile(slide: "OpenSlide", corner: tuple[int, int], policy: Images) -> Image:
    from PIL import Image as Pixels

    with muted(), _refused_if_damaged():
        side = (policy.tile, policy.tile)
        read = slide.read_region(corner, policy.level, side)
        background = f"#{slide.properties.get('openslide.background-color', 'ffffff')}"
        pixels = Pixels.new("RGB", side, background)
        pixels.paste(read, mask=read.getchannel("A"))
        share = tissue(pixels)
        if share < policy.min_tissue:
            raise BadRow(reasons.BACKGROUND)
        x, y = corner
        place = {"part": "tile", "level": str(policy.level), "x": str(x), "y": str(y)}
        return png.stored(pixels, _said(slide) | place | {"tissue": f"{share:.3f}"})


def _said(slide: "OpenSlide") -> dict[str, str]:
    properties: Mapping[str, Any] = slide.properties
    found = {name: str(properties.get(key, "")) for key, name in PASSED_ON.items()}
    return {"original_format": "slide"} | {name: one for name, one in found.items() if one}


def _open(path: Path) -> "OpenSlide":
    import openslide

    with muted(), _refused_if_damaged():
        return openslide.OpenSlide(path)


@contextmanager
def _refused_if_damaged() -> Generator[None]:
    from openslide import OpenSlideError

    try:
        yield
    except (OpenSlideError, OSError, ValueError):
        raise BadRow(reasons.SLIDE_DAMAGED) from None
