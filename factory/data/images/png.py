"""PNG: how pixels are stored that are not kept in the file that they came in."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from factory.data.images.image import Image, content_hash

if TYPE_CHECKING:
    from PIL import Image as Pixels


def stored(pixels: "Pixels.Image", meta: Mapping[str, str]) -> Image:
    """An image of these pixels and nothing else: no profile, no text, no time."""
    from PIL import Image as Pixels

    plain = Pixels.frombytes(pixels.mode, pixels.size, pixels.tobytes())
    file = io.BytesIO()
    plain.save(file, "PNG")
    data = file.getvalue()
    return Image(content_hash(data), data, "png", plain.width, plain.height, plain.mode, meta)
