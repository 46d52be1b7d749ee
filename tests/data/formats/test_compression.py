"""Compressed files: every kind, several members, cut anywhere, damaged anywhere, and bombs."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from factory.data.formats import limits
from factory.data.pattern import Rows
from factory.errors import BadFile


def compress_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": compress_zstd,
}
LINES = b"".join(b'{"n": %d, "text": "%x"}\n' % (n, n**5) for n in range(1, 3_000))


@pytest.fixture(params=list(KINDS))
def suffix(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_compressed_file_is_read_as_what_is_in_it(make_source: Any, suffix: str) -> None:
    source = make_source({f"a.jsonl.{suffix}": KINDS[suffix](LINES)})
    rows = source.rows(f"*.jsonl.{suffix}")
    assert [row.record["n"] for row in rows] == list(range(1, 3_000))
    assert rows[0].id == f"a.jsonl.{suffix}#1"


def test_two_members_are_one_file(make_source: Any, suffix: str) -> None:
    pack = KINDS[suffix]
    source = make_source({f"a.jsonl.{suffix}": pack(LINES[:500]) + pack(LINES[500:])})
    assert len(source.rows(f"*.jsonl.{suffix}")) == 2_999


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_padding_with_zeros_is_allowed_where_tools_write_it(make_source: Any, kind: str) -> None:
    source = make_source({f"a.jsonl.{kind}": KINDS[kind](LINES) + b"\0" * 512})
    assert len(source.rows(f"*.jsonl.{kind}")) == 2_999


def test_a_file_that_was_cut_ends_with_its_position(make_source: Any, suffix: str) -> None:
    packed = KINDS[suffix](LINES)
    for length in (0, 3, len(packed) // 2, len(packed) - 1):
        source = make_source({f"a.jsonl.{suffix}": packed[:length]})
        with pytest.raises(BadFile, match=rf"a\.jsonl\.{suffix}(: is empty|, compressed byte \d)"):
            source.rows(f"*.jsonl.{suffix}")


def test_a_second_member_that_was_cut_is_found_as_well(make_source: Any, suffix: str) -> None:
    pack = KINDS[suffix]
    source = make_source({f"a.jsonl.{suffix}": pack(LINES) + pack(LINES)[:-5]})
    with pytest.raises(BadFile, match=r"compressed byte [\d,]+"):
        source.rows(f"*.jsonl.{suffix}")


def test_any_changed_byte_of_the_data_is_found(make_source: Any, suffix: str) -> None:
    packed = bytearray(KINDS[suffix](LINES))
    chance = random.Random(1)
    for _ in range(20):
        place = chance.randrange(20, len(packed) - 30)
        changed = packed.copy()
        changed[place] ^= 0x55
        source = make_source({f"a.jsonl.{suffix}": bytes(changed)})
        with pytest.raises(BadFile, match=r"a\.jsonl"):
            source.rows(f"*.jsonl.{suffix}")


def test_what_follows_the_data_must_be_data(make_source: Any, suffix: str) -> None:
    source = make_source({f"a.jsonl.{suffix}": KINDS[suffix](LINES) + b"garbage, no member"})
    with pytest.raises(BadFile, match=r"compressed byte [\d,]+: (what follows|damaged or cut)"):
        source.rows(f"*.jsonl.{suffix}")


def test_a_bomb_is_refused_before_it_fills_the_memory(
    make_source: Any, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RATIO_FROM", 2**18)
    bomb = KINDS[suffix](b" " * 2**21)
    source = make_source({f"a.jsonl.{suffix}": bomb})
    with pytest.raises(BadFile, match=r"more than 250 times as many, as a decompression bomb"):
        source.rows(f"*.jsonl.{suffix}")
    assert source.rows(Rows(f"*.jsonl.{suffix}", max_ratio=1e6)) == []


def test_the_total_is_limited_too(
    make_source: Any, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LARGEST_UNPACKED", 10_000)
    source = make_source({f"a.jsonl.{suffix}": KINDS[suffix](LINES)})
    with pytest.raises(BadFile, match="unpacks to more than 10,000 bytes"):
        source.rows(f"*.jsonl.{suffix}")


def test_a_page_instead_of_data_is_called_one(make_source: Any, suffix: str) -> None:
    source = make_source({f"a.xml.{suffix}": "<!DOCTYPE html><html>404</html>"})
    with pytest.raises(BadFile, match=r"not .* but an HTML page"):
        source.rows(f"*.xml.{suffix}")
