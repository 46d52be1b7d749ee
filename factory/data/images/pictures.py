"""Pictures: PNG, JPEG, TIFF, WebP, GIF, BMP, AVIF and PNM files to verified images.

A picture is decoded to its last pixel when it is read, so that training meets none that does not
decode. What is stored are the bytes of the file where PNG, JPEG or WebP hold 8-bit pixels the right
way up, without what stands beside the pixels (see `containers`); everything else becomes a PNG of
8 bits. `meta` says what was done:

| meta              | says                                                                |
|-------------------|---------------------------------------------------------------------|
| `original_format` | what the file was, by its content                                   |
| `named`           | the ending of its name, where that says another format              |
| `removed`         | what stood beside the pixels and was left out                       |
| `converted`       | from which mode of Pillow to which                                  |
| `values`          | what became 0 and 255, where a value had more than 8 bits           |
| `orientation`     | how it was turned, as EXIF counts                                   |
| `frames`          | how many it had, if several: only the first is kept                 |
"""

import io
import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from factory.data.images import levels, png, reasons
from factory.data.images.containers import stripped
from factory.data.images.image import Format, Image, content_hash
from factory.data.images.mute import muted
from factory.errors import BadRow

if TYPE_CHECKING:
    from PIL import Image as Pixels

_KEPT: Mapping[str, Format] = {"PNG": "png", "JPEG": "jpeg", "MPO": "jpeg", "WEBP": "webp"}
_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "AVIF", "PPM")
"""No others are tried: Pillow also knows formats that run programs or stand for whole documents."""

_SUFFIXES: Mapping[str, str] = {
    "png": "PNG",
    "apng": "PNG",
    "jpg": "JPEG",
    "jpeg": "JPEG",
    "jpe": "JPEG",
    "jfif": "JPEG",
    "tif": "TIFF",
    "tiff": "TIFF",
    "webp": "WEBP",
    "gif": "GIF",
    "bmp": "BMP",
    "avif": "AVIF",
    "pgm": "PPM",
    "ppm": "PPM",
    "pbm": "PPM",
    "pnm": "PPM",
}
_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"II*\0", b"MM\0*", b"GIF8", b"BM")
_ORIENTATION = 0x0112
_TURNING = frozenset({"exif", "text"})
"""What can say that a picture lies on its side. Asking Pillow for it may decode the picture."""

_WIDE = ("I", "F")
"""First letters of Pillow's modes of more than 8 bits."""

_TO: Mapping[str, str] = {
    "1": "L",
    "P": "RGB",
    "PA": "RGBA",
    "La": "LA",
    "RGBa": "RGBA",
    "RGBX": "RGB",
    "CMYK": "RGB",
    "YCbCr": "RGB",
    "LAB": "RGB",
    "HSV": "RGB",
}


def decode(data: bytes, max_pixels: int, name: str = "") -> Image:
    """Decode a picture file whole.

    Args:
        data: the file.
        max_pixels: width times height from which on it is refused, before it is decoded.
        name: of the file; only its ending is looked at.

    Raises:
        BadRow: it is empty, no picture, too large, or does not decode; see `reasons`.
    """
    if not data:
        raise BadRow(reasons.EMPTY)
    with muted(), _limited(max_pixels):
        try:
            return _decoded(data, max_pixels, name)
        except BadRow as refused:
            reason = refused.reason
        except Exception as error:  # whatever Pillow raises: what it says may quote the file
            reason = _reason(error, data)
    raise BadRow(reason)


@contextmanager
def _limited(max_pixels: int) -> Generator[None]:
    """Pillow's own limit, which also holds for what it meets inside a file."""
    from PIL import Image as Pixels

    before = Pixels.MAX_IMAGE_PIXELS
    Pixels.MAX_IMAGE_PIXELS = max_pixels
    try:
        yield
    finally:
        Pixels.MAX_IMAGE_PIXELS = before


def _reason(error: Exception, data: bytes) -> str:
    from PIL import Image as Pixels
    from PIL import UnidentifiedImageError

    if isinstance(error, Pixels.DecompressionBombError):
        return reasons.TOO_LARGE
    if isinstance(error, UnidentifiedImageError):
        known = data.startswith(_BEGINNINGS) or data[4:8] == b"ftyp"
        return reasons.DAMAGED if known else reasons.NOT_AN_IMAGE
    cut = isinstance(error, EOFError) or "truncated" in str(error).lower()
    return reasons.TRUNCATED if cut else reasons.DAMAGED


def _decoded(data: bytes, max_pixels: int, name: str) -> Image:
    from PIL import Image as Pixels

    if _zero_sized(data):
        raise BadRow(reasons.ZERO_SIZED)
    with Pixels.open(io.BytesIO(data), formats=_FORMATS) as opened:
        _check_size(opened.size, max_pixels)
        form, meta = opened.format or "", _described(opened, name)
        kept = None
        if form in _KEPT and (form != "WEBP" or "frames" not in meta):
            kept = stripped(data, _KEPT[form])
        if kept is None:
            pixels, orientation = _loaded(data)
        else:
            pixels, orientation = _loaded(kept[0])  # what is stored is what was decoded
            if kept[1] & _TURNING:
                orientation = _orientation(opened)
            if kept[1]:
                meta["removed"] = ", ".join(sorted(kept[1]))
    deep = form == "PNG" and data[24] > 8
    ready = _turned(_converted(pixels, deep, meta), orientation, meta)
    if kept is None or deep or ready is not pixels:
        return png.stored(ready, meta)
    width, height = pixels.size
    return Image(content_hash(kept[0]), kept[0], _KEPT[form], width, height, pixels.mode, meta)


def _loaded(data: bytes) -> "tuple[Pixels.Image, int]":
    """The pixels of the first frame, and how it is to be turned.

    Always from a file that was opened for it: after an error, Pillow takes what it has for all.
    """
    from PIL import Image as Pixels

    with Pixels.open(io.BytesIO(data), formats=_FORMATS) as opened:
        opened.load()
        return opened, _orientation(opened)


def _check_size(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if not width or not height:
        raise BadRow(reasons.ZERO_SIZED)
    if width * height > max_pixels:
        raise BadRow(reasons.TOO_LARGE)


def _zero_sized(data: bytes) -> bool:
    """Whether a header says so; Pillow takes most of these files for none of its formats."""
    try:
        if data.startswith(b"\x89PNG") and data[12:16] == b"IHDR":
            return 0 in struct.unpack_from(">II", data, 16)
        if data.startswith(b"BM"):
            return 0 in struct.unpack_from("<ii", data, 18)
        return data.startswith(b"GIF8") and 0 in struct.unpack_from("<HH", data, 6)
    except struct.error:
        return False


def _described(opened: "Pixels.Image", name: str) -> dict[str, str]:
    form = "JPEG" if opened.format == "MPO" else opened.format or ""
    meta = {"original_format": form.lower()}
    suffix = name.rpartition(".")[2].lower()
    if _SUFFIXES.get(suffix, form) != form:
        meta["named"] = suffix
    frames = getattr(opened, "n_frames", 1)
    if frames > 1:
        meta["frames"] = str(frames)
    return meta


def _orientation(opened: "Pixels.Image") -> int:
    """How the pixels must be turned; a tag that cannot be read says nothing, as in every viewer."""
    try:
        value: object = opened.getexif().get(_ORIENTATION)
    except Exception:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _converted(pixels: "Pixels.Image", deep: bool, meta: dict[str, str]) -> "Pixels.Image":
    """The same picture with 8 bits a channel, in grey or RGB, with or without transparency."""
    if pixels.mode.startswith(_WIDE):
        return _narrowed(pixels, meta)
    target = _TO.get(pixels.mode, pixels.mode)
    if "transparency" in pixels.info:
        target = "LA" if target == "L" else "RGBA"
    if target == pixels.mode:
        if deep:
            meta["converted"] = f"{target} of 16 bits to {target}"
        return pixels
    meta["converted"] = f"{pixels.mode} to {target}"
    return pixels.convert(target)


def _narrowed(pixels: "Pixels.Image", meta: dict[str, str]) -> "Pixels.Image":
    import numpy as np
    from PIL import Image as Pixels

    values = np.asarray(pixels)
    low, high = levels.extent(values)
    meta["converted"] = f"{pixels.mode} to L"
    meta["values"] = f"{low:g}..{high:g}"
    return Pixels.fromarray(levels.to_bytes(values, levels.linear(low, high)))


def _turned(pixels: "Pixels.Image", orientation: int, meta: dict[str, str]) -> "Pixels.Image":
    from PIL.Image import Transpose

    turns: Mapping[int, Transpose] = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    turn = turns.get(orientation)
    if turn is None:
        return pixels
    meta["orientation"] = str(orientation)
    return pixels.transpose(turn)
