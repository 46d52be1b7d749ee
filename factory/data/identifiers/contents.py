"""Contents: the texts of a file that is no file of rows, by what its name and first bytes say.

What is structured is read by its structure, so that a value is seen with its label; what cannot be
is read as the text that it is. Pixels are not read, but what is written beside them.
"""

import io
import json
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Any, cast

from factory.data.formats.notes import Notes
from factory.data.formats.opened import Opened
from factory.data.identifiers.flatten import RowText, decode, object_text, once
from factory.data.identifiers.quiet import quiet
from factory.data.pattern import Pattern, Rows, stem
from factory.errors import BadFile

MAXIMUM_BYTES = 2**31
"""A file that is read whole may be so large; a larger one belongs into rows of a pattern."""

_IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".svs")
_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"GIF8")

ALL = Pattern("**", None, None, Rows("**"))
"""Rows of a file outside the row pattern, as its name says."""

UNREADABLE = RowText("", 1)


def is_image(data: bytes, name: str) -> bool:
    """Whether a file is one of pixels, with texts beside them."""
    webp = data.startswith(b"RIFF") and data[8:12] == b"WEBP"
    return name.lower().endswith(_IMAGES) or data.startswith(_BEGINNINGS) or webp


def texts(data: bytes, name: str) -> Iterator[tuple[int | None, RowText]]:
    """JSON by value, the rest as the text that it is; with the line, where rows are lines."""
    text = decode(data)
    suffix = name.lower().rpartition(".")[2]
    if text is None:
        yield None, UNREADABLE
    elif suffix in ("jsonl", "ndjson"):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield number, _json(line)
    else:
        yield None, _json(text) if suffix == "json" else RowText(text, 0)


def in_memory(data: bytes, name: str) -> Callable[[], Iterator[Opened]]:
    """A file that was read already, to be read as rows; as often as it is asked for."""

    def opened() -> Iterator[Opened]:
        yield Opened(name, stream(data), ALL, Notes(), lambda _: b"", None)

    return opened


def is_readable(files: Callable[[], Iterator[Opened]]) -> bool:
    """Whether a file is what its name says, in each of its rows."""
    from factory.data import reader  # not above: it parses, and declarations import thresholds

    try:
        return all(row.bad is None for file in files() for row in reader.rows(file))
    except (BadFile, OSError):
        return False


def decompressed(data: bytes, name: str) -> bytes | None:
    """What is in a compressed file; none if it is damaged or too large."""
    from factory.data.formats.compression import unpacked  # as above

    try:
        with unpacked(stream(data), stem(name)[1] or "", name, Rows("*").max_ratio) as opened:
            inside = opened.read(MAXIMUM_BYTES + 1)
    except BadFile:
        return None
    return inside if len(inside) <= MAXIMUM_BYTES else None


def beside_pixels(data: bytes) -> tuple[list[str], bool] | None:
    """Texts in an image file, and whether it says where it was taken; none if it is damaged."""
    from PIL import ExifTags, Image

    try:
        with quiet(), Image.open(io.BytesIO(data)) as image:
            exif = image.getexif()
            values: list[Any] = [*image.info.values(), *exif.values()]
            values += exif.get_ifd(ExifTags.IFD.Exif).values()
            located = bool(exif.get_ifd(ExifTags.IFD.GPSInfo))
    except Exception:  # damaged in any way; what Pillow says may quote the file
        return None
    return [decode(one) or "" if isinstance(one, bytes) else str(one) for one in values], located


def stream(data: bytes) -> BufferedReader:
    """Bytes as a file that is open."""
    return BufferedReader(cast(io.RawIOBase, io.BytesIO(data)))


def _json(text: str) -> RowText:
    """Its values, escapes resolved; what is no JSON is scanned as it stands.

    So is what has a name twice, since only one of its values would be seen.
    """
    try:
        return object_text(json.loads(text, object_pairs_hook=once))
    except (ValueError, RecursionError):
        return RowText(text, 0)
