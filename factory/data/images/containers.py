"""Containers: what stands in a PNG, JPEG or WebP file besides its pixels is left out.

EXIF tells where and when a picture was taken, comments and XMP by whom, a thumbnail shows what was
cropped away, and anything may follow the end. Pixels are not encoded anew: their bytes are copied.
"""

import re
import struct
import zlib
from collections.abc import Callable, Mapping

type Stripped = tuple[bytes, set[str]]
"""A file that decodes to the same pixels, and the names of what was left out."""


def stripped(data: bytes, form: str) -> Stripped | None:
    """The file without anything but pixels; none if it is not built as its format says."""
    try:
        return _STRIPPERS[form](data)
    except (IndexError, struct.error):
        return None


_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_PIXELS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
_PNG_NAMES: Mapping[bytes, str] = {
    b"eXIf": "exif",
    b"iTXt": "text",
    b"tEXt": "text",
    b"zTXt": "text",
    b"iCCP": "colour profile",
    b"tIME": "time",
    b"fdAT": "frames",
}


def _png(data: bytes) -> Stripped | None:
    kept, removed = [_PNG_SIGNATURE], set[str]()
    position = len(_PNG_SIGNATURE)
    while True:
        (length,) = struct.unpack_from(">I", data, position)
        end = position + 12 + length
        kind = data[position + 4 : position + 8]
        (check,) = struct.unpack_from(">I", data, end - 4)
        if kind in _PNG_PIXELS:
            if zlib.crc32(data[position + 4 : end - 4]) != check:
                return None
            kept.append(data[position:end])
        else:
            removed.add(_PNG_NAMES.get(kind, "other"))
        position = end
        if kind == b"IEND":
            return b"".join(kept), removed | _trailing(data, end)


_JPEG_NAMES: Mapping[int, str] = {0xE1: "exif", 0xE2: "colour profile", 0xFE: "comment"}
_END_OF_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_SCAN, _END = 0xDA, 0xD9


def _jpeg(data: bytes) -> Stripped | None:
    kept, removed = [b"\xff\xd8"], set[str]()
    position = 2
    while True:
        start, marker = _marker(data, position)
        if marker == _END:
            kept.append(b"\xff\xd9")
            return b"".join(kept), removed | _trailing(data, start)
        (length,) = struct.unpack_from(">H", data, start)
        position = start + length
        wanted, name = _segment(marker, data[start + 2 : position])
        if wanted is not None:
            kept.append(struct.pack(">BBH", 0xFF, marker, len(wanted) + 2) + wanted)
        if name:
            removed.add(name)
        if marker == _SCAN:
            found = _END_OF_SCAN.search(data, position)
            if found is None:
                return None
            kept.append(data[position : found.start()])
            position = found.start()


def _marker(data: bytes, position: int) -> tuple[int, int]:
    """Where the content of a segment starts, and its marker.

    Raises:
        IndexError: there is none.
    """
    start = position
    while data[start] == 0xFF:
        start += 1
    if start == position:
        raise IndexError(position)
    return start + 1, data[start]


def _segment(marker: int, content: bytes) -> tuple[bytes | None, str]:
    """What is kept of a segment, and what is left out of it."""
    if marker == 0xE0 and content.startswith(b"JFIF\0") and len(content) >= 14:
        return content[:12] + b"\0\0", "thumbnail" if content[12:14] != b"\0\0" else ""
    if marker == 0xEE and content.startswith(b"Adobe"):
        return content[:12], ""  # says how the colours are to be read
    if 0xE0 <= marker <= 0xEF or marker == 0xFE:
        return None, _JPEG_NAMES.get(marker, "other")
    return content, ""


_WEBP_PIXELS = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH"})
_WEBP_NAMES: Mapping[bytes, str] = {
    b"EXIF": "exif",
    b"XMP ": "text",
    b"ICCP": "colour profile",
}
_WEBP_ALPHA = 0x10
"""The one flag of an extended header that says something about pixels."""


def _webp(data: bytes) -> Stripped | None:
    (size,) = struct.unpack_from("<I", data, 4)
    end = 8 + size + size % 2
    if len(data) < 8 + size:
        return None
    kept, removed = list[bytes](), _trailing(data, end)
    position = 12
    while position < 8 + size:
        kind, length = struct.unpack_from("<4sI", data, position)
        content = data[position + 8 : position + 8 + length]
        position += 8 + length + length % 2
        if kind not in _WEBP_PIXELS:
            removed.add(_WEBP_NAMES.get(kind, "other"))
            continue
        if kind == b"VP8X":
            content = bytes([content[0] & _WEBP_ALPHA]) + content[1:]
        kept.append(struct.pack("<4sI", kind, length) + content + b"\0" * (length % 2))
    body = b"WEBP" + b"".join(kept)
    return b"RIFF" + struct.pack("<I", len(body)) + body, removed


def _trailing(data: bytes, end: int) -> set[str]:
    return {"data after the end"} if len(data) > end else set()


_STRIPPERS: Mapping[str, Callable[[bytes], Stripped | None]] = {
    "png": _png,
    "jpeg": _jpeg,
    "webp": _webp,
}
