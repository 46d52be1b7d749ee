"""Compression: gzip, bzip2, xz and zstd as streams, checked to their last byte.

Any number of members or frames may follow each other, as tools that append write them. What is cut
short, damaged or followed by something else ends with the position in the compressed file; what
unpacks to far more than it should is refused before it fills memory or disk.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader
from typing import IO, Protocol

import zstandard

from factory.data.formats import limits
from factory.data.formats.errorpage import refuse_page
from factory.errors import BadFile

PACKED_CHUNK = 2**16
ZSTD_CHUNK = 2**10
"""zstd cannot be asked for so many bytes at most: 1 KiB of it unpacks to 32 MiB at the worst."""

ZSTD_WINDOW = 2**27
"""Memory that a zstd file may ask for: what `zstd --long` writes."""


_DAMAGED = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


class _Decoder(Protocol):
    """What the decoders of `zlib`, `bz2`, `lzma` and `zstandard` are brought to."""

    eof: bool
    rest: bytes
    """Given but not yet used; at the end, what follows."""

    hungry: bool
    """Whether nothing more comes out before more is given."""

    def step(self, data: bytes) -> bytes: ...


class _Zlib:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.eof = False
        self.rest = b""
        self.hungry = True

    def step(self, data: bytes) -> bytes:
        out = self._inner.decompress(data, io.DEFAULT_BUFFER_SIZE * 32)
        self.eof = self._inner.eof
        self.rest = self._inner.unused_data if self.eof else self._inner.unconsumed_tail
        return out


class _Buffering:
    """bz2 and lzma, which keep by themselves what they have not used."""

    def __init__(self, inner: "bz2.BZ2Decompressor | lzma.LZMADecompressor") -> None:
        self._inner = inner
        self.eof = False
        self.rest = b""
        self.hungry = True

    def step(self, data: bytes) -> bytes:
        out = self._inner.decompress(data, io.DEFAULT_BUFFER_SIZE * 32)
        self.eof = self._inner.eof
        self.rest = self._inner.unused_data if self.eof else b""
        self.hungry = self._inner.needs_input
        return out


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
        self.eof = False
        self.rest = b""
        self.hungry = True

    def step(self, data: bytes) -> bytes:
        out = self._inner.decompress(data[:ZSTD_CHUNK])
        self.eof = self._inner.eof
        self.rest = (self._inner.unused_data if self.eof else b"") + data[ZSTD_CHUNK:]
        return out


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    decoder: Callable[[], _Decoder]
    padded: bool
    """Whether zero bytes may follow the last member."""


_KINDS = {
    "gz": _Kind("gzip", _Zlib, padded=True),
    "bz2": _Kind("bzip2", lambda: _Buffering(bz2.BZ2Decompressor()), padded=False),
    "xz": _Kind(
        "xz", lambda: _Buffering(lzma.LZMADecompressor(lzma.FORMAT_XZ, 2**29)), padded=True
    ),
    "zst": _Kind("zstd", _Zstd, padded=False),
}


def unpacked(packed: BufferedReader, suffix: str, name: str, max_ratio: float) -> BufferedReader:
    """The bytes inside a compressed stream.

    Raises:
        BadFile: now or while reading: the stream is cut, damaged, or a bomb.
    """
    kind = _KINDS[suffix]
    refuse_page(packed, name, kind.name)
    return BufferedReader(_Unpacking(packed, kind, name, max_ratio), 2**18)


class _Unpacking(io.RawIOBase):
    """Reads out of one compressed member after the other."""

    def __init__(self, packed: IO[bytes], kind: _Kind, name: str, max_ratio: float) -> None:
        super().__init__()
        self._packed = packed
        self._kind = kind
        self._guard = Guard(name, max_ratio)
        self._name = name
        self._decoder: _Decoder | None = None
        self._members = 0
        self._begun = False
        self._given = b""
        self._read = 0
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Close what is read from, too."""
        self._packed.close()
        super().close()

    def readinto(self, buffer: "bytearray | memoryview", /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  any buffer
        """Fill what is asked for, as far as one step of the decoder reaches."""
        if not self._ready:
            self._ready = memoryview(self._next())
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next(self) -> bytes:
        while self._decoder is not None or self._begin():
            out = self._step()
            if out:
                self._begun = True
                self._guard.add(len(out), self._read)
                return out
        return b""

    def _begin(self) -> bool:
        """Find the next member; false at the end of the file."""
        if self._members and self._kind.padded:
            self._given = self._given.lstrip(b"\0")
        while not self._given:
            if not self._fill():
                if not self._members:
                    raise self._bad("is empty")
                return False
            if self._members and self._kind.padded:
                self._given = self._given.lstrip(b"\0")
        self._members += 1
        self._begun = False
        self._decoder = self._kind.decoder()
        return True

    def _step(self) -> bytes:
        decoder = self._decoder
        assert decoder is not None  # noqa: S101  `_next` has begun one
        at_end = not self._given and decoder.hungry and not self._fill()
        try:
            out = decoder.step(self._given)
        except _DAMAGED as error:
            raise self._bad(_reason(error)) from None
        self._given = decoder.rest
        if decoder.eof:
            self._decoder = None
        elif at_end and not out:
            raise self._bad("ends in the middle")
        return out

    def _fill(self) -> bool:
        self._given = self._packed.read(PACKED_CHUNK)
        self._read += len(self._given)
        return bool(self._given)

    def _bad(self, reason: str) -> BadFile:
        position = self._read - len(self._given)
        what = self._kind.name
        if reason == "is empty":
            return BadFile(f"{self._name}: is empty, not {what}.")
        if self._members > 1 and not self._begun:
            return BadFile(
                f"{self._name}, compressed byte {position:,}: what follows the {what} data is none "
                f"({reason})."
            )
        return BadFile(
            f"{self._name}, compressed byte {position:,}: damaged or cut {what} data ({reason}); "
            f"{self._guard.total:,} bytes came out before."
        )


class Guard:
    """Counts what comes out of something packed, and ends it when it is a bomb."""

    def __init__(self, name: str, max_ratio: float) -> None:
        self._name = name
        self._max_ratio = max_ratio
        self.total = 0

    def add(self, unpacked: int, packed: int) -> None:
        """So many bytes more, out of so many packed ones in all.

        Raises:
            BadFile: they are too many.
        """
        self.total += unpacked
        if self.total > limits.LARGEST_UNPACKED:
            raise BadFile(
                f"{self._name}: unpacks to more than {limits.LARGEST_UNPACKED:,} bytes. Refused; "
                "split it into smaller files."
            )
        if self.total > limits.RATIO_FROM and self.total > self._max_ratio * packed:
            raise BadFile(
                f"{self._name}: {packed:,} packed bytes have become {self.total:,} already, more "
                f"than {self._max_ratio:g} times as many, as a decompression bomb does. Refused; "
                "if it is none, declare Rows(max_ratio=...)."
            )


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text.rpartition(":")[2].strip().rstrip(".") or type(error).__name__
