"""Montage: a sheet of small pictures, so that a person sees what an image set shows.

Only for public sets: what is drawn here leaves the tree. Which images are drawn depends on nothing
but their hashes, so every run draws the same.
"""

import io
from collections.abc import Iterable, Sequence

from factory.data.images.mute import muted

GAP = 4
_BACKGROUND = (255, 255, 255)


def sample(hashes: Iterable[str], count: int) -> list[str]:
    """So many of the images, the same in whatever order they come."""
    return sorted(set(hashes))[:count]


def montage(images: Sequence[bytes], columns: int = 6, side: int = 128) -> bytes:
    """A PNG with these stored images in rows, each made to fit into a square.

    Raises:
        ValueError: there are none.
    """
    from PIL import Image as Pixels

    if not images or columns < 1 or side < 1:
        raise ValueError(f"{len(images)} images in {columns} columns of {side} pixels: no sheet")
    columns = min(columns, len(images))
    lines = -(-len(images) // columns)
    step = side + GAP
    sheet = Pixels.new("RGB", (columns * step - GAP, lines * step - GAP), _BACKGROUND)
    for number, data in enumerate(images):
        line, column = divmod(number, columns)
        with muted(), Pixels.open(io.BytesIO(data)) as opened:
            small = opened.convert("RGBA")
        small.thumbnail((side, side))
        left = column * step + (side - small.width) // 2
        upper = line * step + (side - small.height) // 2
        sheet.paste(small, (left, upper), small)
    file = io.BytesIO()
    sheet.save(file, "PNG")
    return file.getvalue()
