"""Reads a log line by line, from a file or wherever else its bytes come.

Nothing is lost and nothing is kept: a line longer than `LONGEST_PIECE_BYTES` is delivered in
pieces, and bytes that are not UTF-8 are shown as escapes. The messages of a run are in `messages`.
"""

import codecs
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LONGEST_PIECE_BYTES = 1 << 20
BLOCK_BYTES = 1 << 18
TAIL_LINES = 40
TAIL_LINE_CHARACTERS = 2_000


class ByteSource(Protocol):
    """A log as bytes that only grow."""

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on; empty where none are there yet."""
        ...


@dataclass(frozen=True)
class FileSource:
    """A log in a file, which may not be there yet."""

    path: Path
    start: int = 0
    """Where this run's part begins; what an earlier attempt wrote lies before it."""

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on, counted from this run's part."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.start + offset)
                return file.read(limit)
        except FileNotFoundError:
            return b""


@dataclass(frozen=True)
class Line:
    """A line, or a piece of a very long one."""

    text: str
    ends: bool = True
    """False for a piece: what follows belongs to the same line."""


class LineReader:
    """Lines of a source, each delivered once, with the last ones kept for an error message."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._offset = 0
        self._decoder = _decoder()
        self._partial: list[str] = []
        self._partial_characters = 0
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._tail_open = False

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._offset

    @property
    def tail(self) -> list[str]:
        """The last lines delivered, each shortened."""
        return list(self._tail)

    def read(self, limit: int = BLOCK_BYTES) -> list[Line]:
        """The lines that were completed by the next block; empty where nothing new is there."""
        block = self._source.read(self._offset, limit)
        self._offset += len(block)
        return self._lines(self._decoder.decode(block))

    def finish(self) -> Iterator[list[Line]]:
        """Everything that is still there, in blocks; a last line without a line break counts."""
        while True:
            before = self._offset
            lines = self.read()
            if lines:
                yield lines
            if self._offset == before:
                break
        self._partial.append(self._decoder.decode(b"", final=True))
        if rest := "".join(self._partial):
            self._partial.clear()
            yield self._kept([Line(rest.removesuffix("\r"))])

    def _lines(self, text: str) -> list[Line]:
        *complete, rest = text.split("\n")
        lines: list[Line] = []
        for line in complete:
            lines.append(Line(("".join(self._partial) + line).removesuffix("\r")))
            self._partial.clear()
            self._partial_characters = 0
        self._partial.append(rest)
        self._partial_characters += len(rest)
        if self._partial_characters >= LONGEST_PIECE_BYTES:
            lines.append(Line("".join(self._partial), ends=False))
            self._partial.clear()
            self._partial_characters = 0
        return self._kept(lines)

    def _kept(self, lines: list[Line]) -> list[Line]:
        for line in lines[-TAIL_LINES - 1 :]:
            if self._tail_open and self._tail:
                self._tail[-1] = (self._tail[-1] + line.text)[:TAIL_LINE_CHARACTERS]
            else:
                self._tail.append(line.text[:TAIL_LINE_CHARACTERS])
            self._tail_open = not line.ends
        return lines


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
