"""Where the parts of a zip lie: one member after the other, then the directory, and nothing else.

Readers of zip files look at the directory at the end and at what it points to. Bytes before,
between and behind are read by nobody: a second archive, a program, a member that was struck out.
Layout: PKWARE's APPNOTE, sections 4.3.7 to 4.3.16.
"""

import struct
import zipfile
from collections.abc import Sequence
from io import BufferedReader

LOCAL = struct.Struct("<4s5H3L2H")
END = struct.Struct("<4s4H2LH")
END_64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64 = struct.Struct("<4sLQL")

_STREAMED = 0x08
"""Flag of a member whose sizes follow its data."""

_DESCRIPTOR = b"PK\x07\x08"
_FULL = 0xFFFFFFFF
"""Stands in a header for a number that is in the header's zip64 field."""


class Gap(ValueError):
    """Bytes that belong to no part."""


def extras(file: BufferedReader, infos: Sequence[zipfile.ZipInfo]) -> list[bytes]:
    """The extra fields in front of each member, in which anything can be; the position stays.

    Raises:
        Gap: bytes lie before, between or behind the parts of the zip.
    """
    place = file.tell()
    try:
        directory = _directory(file)
        found: list[bytes] = []
        reached = 0
        for info in sorted(infos, key=lambda one: one.header_offset):
            _refuse_gap(reached, info.header_offset, "before a member")
            extra, reached = _member(file, info, directory)
            found.append(extra)
        _refuse_gap(reached, directory, "before its directory")
    finally:
        file.seek(place)
    return found


def _refuse_gap(reached: int, begins: int, where: str) -> None:
    if reached != begins:
        raise Gap(f"{abs(begins - reached):,} bytes {where} that belong to none of its parts")


def _directory(file: BufferedReader) -> int:
    """Where the directory begins; it has to end where the marks of the end begin."""
    size = file.seek(0, 2)
    longest = END.size + 0xFFFF
    begin = max(0, size - longest)
    file.seek(begin)
    tail = file.read(longest)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END.size:
        raise Gap("no mark of its end")
    end = END.unpack_from(tail, at)
    behind = len(tail) - at - END.size - end[7]
    if behind:
        raise Gap(f"{abs(behind):,} bytes behind its end that belong to none of its parts")
    length, offset, ends = end[5], end[6], begin + at
    if ends >= LOCATOR_64.size + END_64.size:
        file.seek(ends - LOCATOR_64.size)
        mark, _, record, _ = LOCATOR_64.unpack(file.read(LOCATOR_64.size))
        if mark == b"PK\x06\x07":
            file.seek(min(record, size))  # it may say more than a file can have
            data = file.read(END_64.size)
            if len(data) < END_64.size or data[:4] != b"PK\x06\x06":
                raise Gap("no second mark of its end where the first one says that it is")
            values = END_64.unpack(data)
            _refuse_gap(record + 12 + values[1], ends - LOCATOR_64.size, "before its end")
            length, offset, ends = values[8], values[9], record
    _refuse_gap(offset + length, ends, "behind its directory")
    return offset


def _member(file: BufferedReader, info: zipfile.ZipInfo, directory: int) -> tuple[bytes, int]:
    """The extra field in front of a member, and where the member ends."""
    file.seek(info.header_offset)
    data = file.read(LOCAL.size)
    if len(data) < LOCAL.size or data[:4] != b"PK\x03\x04":
        raise Gap("no member where its directory says that one is")
    header = LOCAL.unpack(data)
    name, extra = file.read(header[9]), file.read(header[10])
    end = info.header_offset + LOCAL.size + len(name) + len(extra) + info.compress_size
    if not info.flag_bits & _STREAMED or end > directory:
        return extra, end
    file.seek(end)
    after = file.read(24)
    marked = 4 if after.startswith(_DESCRIPTOR) else 0
    for numbers in ("<2Q", "<2L"):
        sizes = after[marked + 4 : marked + 4 + struct.calcsize(numbers)]
        if sizes == struct.pack(numbers, *_clipped(info, numbers)):
            return extra, min(directory, end + marked + 4 + len(sizes))
    return extra, end


def _clipped(info: zipfile.ZipInfo, numbers: str) -> tuple[int, int]:
    limit = _FULL if numbers == "<2L" else 2**64 - 1
    return min(info.compress_size, limit), min(info.file_size, limit)
