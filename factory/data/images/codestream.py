"""Code streams: how large the picture in a compressed DICOM frame says that it is.

A codec allocates what the stream says, whatever the header of the file says; so both must agree
before a frame is decoded.
"""

import struct

_JPEG_2000 = b"\xff\x4f\xff\x51"
_FRAMES = frozenset({*range(0xC0, 0xD0), 0xF7}) - {0xC4, 0xC8, 0xCC}
"""JPEG and JPEG-LS markers that carry the size; the three are tables and extensions."""


def size(frame: bytes) -> tuple[int, int] | None:
    """Width and height; none if the stream does not begin as JPEG, JPEG-LS or JPEG 2000 do."""
    try:
        start = frame.find(_JPEG_2000, 0, 4096)  # some writers put a file header before it
        if start >= 0:
            right, lower, left, upper = struct.unpack_from(">IIII", frame, start + 8)
            return right - left, lower - upper
        return _jpeg_size(frame) if frame.startswith(b"\xff\xd8") else None
    except (IndexError, struct.error):
        return None


def _jpeg_size(frame: bytes) -> tuple[int, int] | None:
    position = 2
    while frame[position] == 0xFF:
        while frame[position] == 0xFF:
            position += 1
        marker = frame[position]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", frame, position + 4)
            return width, height
        (length,) = struct.unpack_from(">H", frame, position + 1)
        position += 1 + length
    return None
