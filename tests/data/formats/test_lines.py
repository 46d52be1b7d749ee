"""JSON lines: what may stand in a line, how lines end, and which rows are rejected alone."""

import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.formats import encoding, limits
from factory.data.formats.lines import byte_lines, can_lose_lines, lines
from factory.data.pattern import Pattern, Rows
from factory.errors import BadFile, BadRow


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end(make_source: Any, end: str) -> None:
    source = make_source({"a.jsonl": f'{{"n": 1}}{end}{end}  {end}{{"n": 2}}{end}{{"n": 3}}'})
    assert [(row.position, row.record["n"]) for row in source.rows("*.jsonl")] == [
        (1, 1),
        (4, 2),
        (5, 3),
    ]


@given(
    text=st.text(alphabet="ab\r\n\x0b\x85\u2028", max_size=40), cuts=st.lists(st.integers(0, 40))
)
def test_lines_are_the_same_however_a_text_comes(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[a:b] for a, b in itertools.pairwise(places)]
    expected = list(io.StringIO(text, newline=""))
    assert list(lines(chunks, "a")) == expected
    assert [one.decode() for one in byte_lines(io.BytesIO(text.encode()))] == expected


BAD_ROWS = {
    "NUL character in text": ['{"a": "\\u0000"}', '{"a\\u0000": 1}', '{"a": [{"b": "x\\u0000"}]}'],
    "lone surrogate in text": ['{"a": "\\ud800"}', '{"a": "\\uDC00\\uD800"}', '{"\\udfff": 1}'],
    "duplicate key in object": ['{"a": 1, "a": 1}', '{"b": [{"a": 1, "a": 2}]}'],
}


@pytest.mark.parametrize(
    ("reason", "line"), [(reason, line) for reason, many in BAD_ROWS.items() for line in many]
)
@pytest.mark.parametrize("form", ["{}\n", "[{}]", "whole"])
def test_rows_that_no_sample_can_be(make_source: Any, reason: str, line: str, form: str) -> None:
    if form == "{}\n":
        source = make_source({"a.jsonl": f'{{"n": 1}}\n{line}\n{{"n": 2}}\n'})
        one, row, two = source.rows("*.jsonl")
    elif form == "[{}]":
        source = make_source({"a.json": f'[{{"n": 1}},\n{line}, {{"n": 2}}]'})
        one, row, two = source.rows("*.json")
    else:
        source = make_source({"a.json": line})
        (row,) = source.rows("*.json")
        one = two = None
    assert row.bad == reason
    with pytest.raises(BadRow, match=reason):
        _ = row.record
    if one is not None and two is not None:
        assert (one.record["n"], two.record["n"]) == (1, 2)


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_a_nul_byte_rejects_its_row(make_source: Any, suffix: str) -> None:
    text = '{"a": "x\0y"}\n' if suffix == "jsonl" else '[{"a": "x\0y"}]'
    (row,) = make_source({f"a.{suffix}": text}).rows(f"*.{suffix}")
    assert row.bad == "NUL character in text"


def test_what_is_unusual_and_right_stays_as_it_is(make_source: Any) -> None:
    texts = ["\U0001f600", "a\u200bb\u200d\ufeff", "\\u0000", "e\u0301", "\x85\u2028", "ﷺ", "\x7f"]
    for escaped in (True, False):
        body = "".join(json.dumps({"a": one}, ensure_ascii=escaped) + "\n" for one in texts)
        source = make_source({"a.jsonl": body})
        assert [row.text("a") for row in source.rows("*.jsonl")] == texts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": 1,}', r"line 2, column \d+: not JSON"),
        ('{"a": [1,]}', r"line 2, column \d+: not JSON"),
        ('{"a": "cut', r"line 2, column 7: not JSON: Unterminated"),
        ('{"a": 1', r"line 2, column \d+: not JSON"),
        ('{"a": 1} {"b": 2}', "line 2, column 10: not JSON: something follows"),
        ('{"a": NaN}', "line 2: not JSON: NaN is no JSON number"),
        ('{"a": -Infinity}', "line 2: not JSON: -Infinity is no JSON number"),
        ('{"a": 1e999}', "line 2: not JSON: a number is too large"),
        ('{"a": 01}', r"line 2, column \d+: not JSON"),
        ("{'a': 1}", r"line 2, column 2: not JSON"),
        ('{"a": "tab\there"}', r"line 2, column \d+: not JSON: Invalid control"),
        ("\0\0\0\0", "line 2, column 1: not JSON"),
        ("null", "row 2: not a JSON object but NoneType"),
        ('{"a":' * 100_000, "line 2: not JSON: nested too deeply"),
    ],
)
def test_a_line_that_is_no_object_ends_the_step(make_source: Any, line: str, message: str) -> None:
    source = make_source({"a.jsonl": f'{{"n": 1}}\n{line}\n{{"n": 2}}\n'})
    with pytest.raises(BadFile, match=rf"a\.jsonl, {message}"):
        source.rows("*.jsonl")


def test_a_huge_line_is_read_and_one_beyond_the_limit_is_refused(
    make_source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"a": "x" * 3_000_000}) + "\n" + json.dumps({"a": "y"})
    source = make_source({"a.jsonl": body, "b.json": f"[{body.replace(chr(10), ',')}]"})
    for pattern in ("*.jsonl", "*.json"):
        assert [len(row.text("a")) for row in source.rows(pattern)] == [3_000_000, 1]
    monkeypatch.setattr(limits, "LARGEST_ROW", 2_000_000)
    with pytest.raises(BadFile, match="line 1: is longer than 2,000,000 characters"):
        source.rows("*.jsonl")
    with pytest.raises(BadFile, match="line 1: a value is longer than 2,000,000 characters"):
        source.rows("*.json")


def test_a_page_named_as_data_is_called_a_page(make_source: Any) -> None:
    pages = ["<!DOCTYPE html><html>", "\n <HTML lang='en'>", "<!-- x --><html>\n", "<html\n>"]
    for page in pages:
        for name in ("a.jsonl", "a.json", "a.csv", "a.xml", "a.parquet"):
            source = make_source({name: page})
            with pytest.raises(BadFile, match=rf"{name}: is not .* but an HTML page"):
                source.rows(name)


def test_a_column_that_is_null_for_long_and_then_is_not(
    make_source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "CHUNK", 1_000)
    rows: list[dict[str, Any]] = [{"a": None} for _ in range(5_000)]
    rows += [{"a": "text"}, {"a": 3}, {"a": {"b": [1]}}]
    source = make_source({"a.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    assert [row.record for row in source.rows("*.jsonl")] == rows


def test_a_file_may_be_declared_to_be_lines(make_source: Any) -> None:
    source = make_source({"dev.json": '{"n": 1}\n{"n": 2}\n'})
    with pytest.raises(BadFile, match=r"dev\.json, line 2, column 1: not JSON: something follows"):
        source.rows("*.json")
    assert len(source.rows(Rows("*.json", format="jsonl"))) == 2


@pytest.mark.parametrize(
    ("name", "rows", "content", "expected"),
    [
        ("a.jsonl", "*.jsonl", b"{}\n", True),
        ("a.jsonl", Rows("*.jsonl", encoding="utf-16"), b"{}\n", False),
        ("a.jsonl", "*.jsonl", "{}\n".encode("utf-16"), False),
        ("a.jsonl", Rows("*.jsonl", format="json"), b"{}\n", False),
        ("a.jsonl.gz", "*.jsonl.gz", b"", False),
        ("a.json", Rows("*.json", format="jsonl"), b"{}\n", True),
        ("a.zip", "a.zip!*.jsonl", b"", False),
    ],
)
def test_where_a_line_can_be_emptied_in_place(
    tmp_path: Path, name: str, rows: str | Rows, content: bytes, expected: bool
) -> None:
    (tmp_path / name).write_bytes(content)
    assert can_lose_lines(tmp_path / name, Pattern.parse(rows)) is expected
