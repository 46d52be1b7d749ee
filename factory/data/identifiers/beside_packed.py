"""What a compressed file says beside its contents: names and comments of gzip, frames of zstd.

It is published with the file, and nothing that unpacks it shows it. bzip2 and xz have no place for
such texts. Formats: RFC 1952 section 2.3 and RFC 8878 section 3.1.2.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import NamedTuple

from factory.data.identifiers.flatten import decode

CHUNK = 2**16
LONGEST = 2**20
"""Bytes of one text that are read; nobody writes a longer one, and if so, it cannot be read."""

_EXTRA, _NAME, _COMMENT, _CHECKSUM = 4, 8, 16, 2
"""Flags of a gzip header."""

_SIZES = 4
"""Bytes of a skippable frame of pzstd: the size of the frame behind it."""

_SKIPPABLE = range(0x184D2A50, 0x184D2A60)


class Said(NamedTuple):
    """A text beside the contents."""

    text: str | None
    """None where it is no text, or a longer one than is read."""

    is_name: bool = False
    """Whether it is what the file was called when it was packed."""


def beside_packed(packed: BufferedReader, name: str) -> Iterator[Said]:
    """Texts beside the contents.

    A file that is damaged ends it: that it cannot be read shows where its contents are.

    Args:
        packed: the compressed file, from its beginning.
        name: of the file, by which it is told what packed it.
    """
    read = {"gz": _gzip, "tgz": _gzip, "zst": _zstd}.get(name.lower().rpartition(".")[2])
    if read is None:
        return
    try:
        for data, is_name in read(_Source(packed)):
            if data is None:
                yield Said(None)
            elif data:
                yield Said(decode(data), is_name)
    except (EOFError, zlib.error):
        return


@dataclass
class _Source:
    """Bytes that can be given back."""

    packed: BufferedReader
    held: bytes = b""

    def some(self) -> bytes:
        """The next bytes; empty at the end."""
        data, self.held = self.held, b""
        return data or self.packed.read(CHUNK)

    def exactly(self, count: int) -> bytes:
        """So many bytes.

        Raises:
            EOFError: there are fewer.
        """
        while len(self.held) < count:
            more = self.packed.read(CHUNK)
            if not more:
                raise EOFError
            self.held += more
        data, self.held = self.held[:count], self.held[count:]
        return data

    def until_zero(self) -> bytes | None:
        """Bytes up to a zero byte, without it; none if they are too many.

        Raises:
            EOFError: there is none.
        """
        while b"\0" not in self.held:
            if len(self.held) > LONGEST:
                return None
            more = self.packed.read(CHUNK)
            if not more:
                raise EOFError
            self.held += more
        text, _, self.held = self.held.partition(b"\0")
        return text

    def skip_zeros(self) -> bool:
        """Go to the next byte that is not zero; whether there is one."""
        while not (data := self.some().lstrip(b"\0")):
            if not self.packed.peek(1):
                return False
        self.held = data
        return True


type _Bytes = tuple[bytes | None, bool]
"""What was read, none if it is too long, and whether it is a name."""


def _gzip(source: _Source) -> Iterator[_Bytes]:
    while source.skip_zeros():
        head = source.exactly(10)
        if head[:2] != b"\x1f\x8b":
            return
        flags = head[3]
        if flags & _EXTRA:
            extra = source.exactly(int.from_bytes(source.exactly(2), "little"))
            yield b"" if _holds_sizes(extra) else extra, False
        for flag in (_NAME, _COMMENT):
            if flags & flag:
                text = source.until_zero()
                yield text, flag == _NAME
                if text is None:
                    return
        if flags & _CHECKSUM:
            source.exactly(2)
        _pass(source)
        source.exactly(8)


def _holds_sizes(extra: bytes) -> bool:
    """Whether an extra field holds sizes of blocks and nothing else.

    As bgzip (BC), dictzip (RA: version, length and number of chunks, and their sizes) and mgzip
    (SZ) write them.
    """
    kind, length, data = extra[:2], int.from_bytes(extra[2:4], "little"), extra[4:]
    if length != len(data):
        return False
    if kind == b"RA":
        return data[:2] == b"\1\0" and length == 6 + 2 * int.from_bytes(data[4:6], "little")
    return (kind, length) in ((b"BC", 2), (b"SZ", 4), (b"SZ", 8))


def _pass(source: _Source) -> None:
    """Go to the end of deflated data."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    data = b""
    while not inflate.eof:
        data = inflate.unconsumed_tail or source.some()
        if not data:
            raise EOFError
        inflate.decompress(data, CHUNK)
    source.held = inflate.unused_data


def _zstd(source: _Source) -> Iterator[_Bytes]:
    while data := source.some():
        source.held = data
        magic = int.from_bytes(source.exactly(4), "little")
        if magic in _SKIPPABLE:
            size = int.from_bytes(source.exactly(4), "little")
            if size > LONGEST:
                yield None, False
                return
            data = source.exactly(size)
            yield b"" if size == _SIZES else data, False
        else:
            source.held = magic.to_bytes(4, "little") + source.held
            _pass_frame(source)


def _pass_frame(source: _Source) -> None:
    import zstandard

    inflate = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    try:
        while not inflate.eof:
            data = source.some()
            if not data:
                raise EOFError
            for start in range(0, len(data), 1024):
                inflate.decompress(data[start : start + 1024])
                if inflate.eof:
                    source.held = inflate.unused_data + data[start + 1024 :]
                    break
    except zstandard.ZstdError:
        raise EOFError from None
