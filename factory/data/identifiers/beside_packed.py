"""What a compressed file says beside its contents: names and comments of gzip, frames of zstd.

It is published with the file, and nothing that unpacks it shows it. bzip2 and xz have no place for
such texts. Formats: RFC 1952 section 2.3 and RFC 8878 section 3.1.2.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

from factory.data.identifiers.flatten import decode

CHUNK = 2**16
LONGEST = 2**20
"""Bytes of one text that are read; nobody writes a longer one."""

_EXTRA, _NAME, _COMMENT, _CHECKSUM = 4, 8, 16, 2
"""Flags of a gzip header."""

_BLOCKS = b"BC\x02\x00"
"""Of bgzip: the extra field holds the size of a block and nothing else."""

_SKIPPABLE = range(0x184D2A50, 0x184D2A60)


def beside_packed(packed: BufferedReader, name: str) -> Iterator[str | None]:
    """Texts beside the contents; none for one that is no text.

    A file that is damaged ends it: that it cannot be read shows where its contents are.

    Args:
        packed: the compressed file, from its beginning.
        name: of the file, by which it is told what packed it.
    """
    read = {"gz": _gzip, "tgz": _gzip, "zst": _zstd}.get(name.lower().rpartition(".")[2])
    if read is None:
        return
    try:
        for text in read(_Source(packed)):
            if text:
                yield decode(text)
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

    def until_zero(self) -> bytes:
        """Bytes up to a zero byte, without it; of a longer text its beginning.

        Raises:
            EOFError: there is none.
        """
        while b"\0" not in self.held:
            more = self.packed.read(CHUNK)
            if not more or len(self.held) > LONGEST:
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


def _gzip(source: _Source) -> Iterator[bytes]:
    while source.skip_zeros():
        head = source.exactly(10)
        if head[:2] != b"\x1f\x8b":
            return
        flags = head[3]
        if flags & _EXTRA:
            extra = source.exactly(int.from_bytes(source.exactly(2), "little"))
            yield b"" if extra.startswith(_BLOCKS) and len(extra) == 6 else extra
        if flags & _NAME:
            yield source.until_zero()
        if flags & _COMMENT:
            yield source.until_zero()
        if flags & _CHECKSUM:
            source.exactly(2)
        _pass(source)
        source.exactly(8)


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


def _zstd(source: _Source) -> Iterator[bytes]:
    while data := source.some():
        source.held = data
        magic = int.from_bytes(source.exactly(4), "little")
        if magic in _SKIPPABLE:
            yield source.exactly(min(LONGEST, int.from_bytes(source.exactly(4), "little")))
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
