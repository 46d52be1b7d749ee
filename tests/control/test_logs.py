"""The line reader against what logs really hold: very long, broken, binary, and very many lines."""

import itertools
import random
import tracemalloc
from pathlib import Path

import pytest

from factory.control.logs import (
    BLOCK_BYTES,
    LONGEST_PIECE_BYTES,
    TAIL_LINE_CHARACTERS,
    TAIL_LINES,
    FileSource,
    Line,
    LineReader,
)


def everything(reader: LineReader) -> list[Line]:
    return list(itertools.chain.from_iterable(reader.finish()))


def test_a_line_is_delivered_when_it_ends_and_not_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    reader = LineReader(FileSource(log))
    assert reader.read() == []  # not there yet
    with log.open("wb", buffering=0) as file:
        file.write(b"first\nsec")
        assert reader.read() == [Line("first")]
        assert reader.read() == []
        file.write(b"ond\n\nthi")
        assert reader.read() == [Line("second"), Line("")]
    assert everything(reader) == [Line("thi")]
    assert everything(reader) == []


@pytest.mark.slow
def test_a_million_lines_arrive_once_and_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {i}\n" for i in range(1_000_000)))
    reader = LineReader(FileSource(log))
    expected = 0
    for lines in reader.finish():
        for line in lines:
            assert line.text == f"line {expected}"
            expected += 1
    assert expected == 1_000_000
    assert reader.tail == [f"line {i}" for i in range(1_000_000 - TAIL_LINES, 1_000_000)]


def test_a_line_of_5_mb_comes_whole_in_bounded_pieces(tmp_path: Path) -> None:
    log = tmp_path / "log"
    long = "".join(random.choices("abcdefgh ä€", k=500_000)) * 10
    log.write_text(f"before\n{long}\nafter\n", encoding="utf-8")
    reader = LineReader(FileSource(log))
    pieces: list[Line] = []
    largest = 0
    for lines in reader.finish():
        pieces += lines
        largest = max([largest, *(len(line.text) for line in lines)])
    assert pieces[0] == Line("before")
    assert pieces[-1] == Line("after")
    assert "".join(piece.text for piece in pieces[1:-1]) == long
    assert [piece.ends for piece in pieces[1:-1]] == [False] * (len(pieces) - 3) + [True]
    assert largest <= LONGEST_PIECE_BYTES + BLOCK_BYTES
    assert [len(line) for line in reader.tail] == [6, TAIL_LINE_CHARACTERS, 5]


def test_memory_does_not_grow_with_the_log() -> None:
    class Endless:
        """256 MB without a single line break."""

        def read(self, offset: int, limit: int) -> bytes:
            return b"x" * min(limit, max(0, 2**28 - offset))

    reader = LineReader(Endless())
    tracemalloc.start()
    delivered = sum(len(line.text) for lines in reader.finish() for line in lines)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert delivered == 2**28
    assert peak < 16 * 2**20


def test_bytes_that_are_not_text_are_shown_as_escapes_and_lose_nothing_else(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"ok\n\xff\xfe\x00binary\n" + "ä€\n".encode() + b"cut \xe2\x82\nnext\r\n\xe2")
    assert everything(LineReader(FileSource(log))) == [
        Line("ok"),
        Line("\\xff\\xfe\x00binary"),
        Line("ä€"),
        Line("cut \\xe2\\x82"),
        Line("next"),
        Line("\\xe2"),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_character_split_between_two_blocks_is_put_together(tmp_path: Path, size: int) -> None:
    log = tmp_path / "log"
    text = "aä€𝄞\n" * 20
    log.write_text(text, encoding="utf-8")
    reader = LineReader(FileSource(log))
    lines: list[Line] = []
    while reader.offset < log.stat().st_size:
        lines += reader.read(size)
    assert "".join(f"{line.text}\n" for line in lines) == text


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a\x0bb\x0cc\u2028d\x85e\n", encoding="utf-8", newline="")
    assert everything(LineReader(FileSource(log))) == [Line("a\x0bb\x0cc\u2028d\x85e")]


def test_an_earlier_attempt_in_the_same_file_is_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("attempt 1\n")
    source = FileSource(log, start=log.stat().st_size)
    with log.open("a") as file:
        file.write("attempt 2\n")
    assert everything(LineReader(source)) == [Line("attempt 2")]
