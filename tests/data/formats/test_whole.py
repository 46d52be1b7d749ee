"""Whole files, and other files of the source beside them."""

from typing import Any

import pytest

from factory.data.formats import limits, opened
from factory.data.pattern import Pattern, Rows
from factory.data.reader import Notes, read
from factory.data.row import Row
from factory.errors import BadFile, BadRow, DeclarationError


def test_text_and_bytes(make_source: Any) -> None:
    source = make_source({"a.txt": "one\r\ntwo", "b.bin": b"\0\xff", "c.md": "# x", "d": b"x"})
    assert [row.string for row in source.rows("*.txt")] == ["one\r\ntwo"]
    assert [row.content for row in source.rows("*.bin")] == [b"\0\xff"]
    assert [row.string for row in source.rows("*.md")] == ["# x"]
    (row,) = source.rows("d")
    with pytest.raises(TypeError, match="declare format='text'"):
        _ = row.string
    assert [row.string for row in source.rows(Rows("d", format="text"))] == ["x"]
    assert [row.content for row in source.rows(Rows("*.txt", format="content"))] == [b"one\r\ntwo"]


def test_a_text_with_a_nul_is_rejected_and_the_next_one_is_read(make_source: Any) -> None:
    rows = make_source({"a.txt": "a\0b", "b.txt": "c"}).rows("*.txt")
    assert [row.bad for row in rows] == ["NUL character in text", None]


def test_files_that_are_too_large(make_source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make_source({"a.txt": "x" * 100, "b.bin": b"x" * 100})
    monkeypatch.setattr(limits, "LARGEST_ROW", 99)
    monkeypatch.setattr(opened, "LARGEST_FILE", 99)
    with pytest.raises(BadFile, match=r"a\.txt: is longer than 99 characters"):
        source.rows("*.txt")
    with pytest.raises(BadFile, match=r"b\.bin: has more than 99 bytes"):
        source.rows("*.bin")


def test_files_beside_a_row(make_source: Any) -> None:
    source = make_source({"d/a.jsonl": '{"n": 1}\n', "d/i/x.png": b"1", "y.png": b"2", "d/z": b"3"})
    (row,) = source.rows("d/*.jsonl")
    assert row.beside("i/x.png") == b"1"
    assert row.beside("../y.png") == b"2"
    assert row.beside("./i/../z") == b"3"
    for path in ("", "none.png", "i"):
        with pytest.raises(BadRow, match=r"is missing|leads out"):
            row.beside(path)
    for path in ("/etc/passwd", "../../x", "../../source/y.png", "i/../../../x", "a\0b"):
        with pytest.raises(BadRow, match="leads out"):
            row.beside(path)


def test_links_beside_a_row_stay_in_the_source(make_source: Any) -> None:
    source = make_source({"a.jsonl": '{"n": 1}\n', "in.txt": "inside"})
    (source.root.parent / "out.txt").write_text("outside")
    for name, target in (("l1", "in.txt"), ("l2", "../out.txt"), ("l3", "gone"), ("l4", "l4")):
        (source.root / name).symlink_to(target)
    (row,) = read(source.root, ["a.jsonl"], Pattern.parse("*.jsonl"), Notes())
    assert row.beside("l1") == b"inside"
    for name, reason in (("l2", "leads out"), ("l3", "is missing"), ("l4", "is missing")):
        with pytest.raises(BadRow, match=reason):
            row.beside(name)


def test_a_row_without_a_source_has_nothing_beside_it() -> None:
    with pytest.raises(TypeError, match="nothing is beside it"):
        Row("a", 1, json={}).beside("x")


def test_images_need_a_declaration() -> None:
    with pytest.raises(BadRow, match="in a dataset that declares none"):
        _ = Row("a.png", None, data=b"x").image


def test_raw_keeps_what_rows_ask_for() -> None:
    pattern = Pattern.parse(Rows("*.csv", beside=("images/**",)))
    names = ["a.csv", "images/x.png", "images/d/y.png", "z.png"]
    assert pattern.kept(names) == ["a.csv", "images/d/y.png", "images/x.png"]
    assert pattern.matching(names) == ["a.csv"]


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/a.csv",
        "../a.csv",
        "a.zip!",
        "a.zip!../x",
        "a.zip!/x",
        "a.csv//row",
        "a.csv!x.txt",
        "*!x.txt",
        "a.zip!*.dcm//frame",
        "a.xml//",
    ],
)
def test_patterns_that_name_nothing(pattern: str) -> None:
    with pytest.raises(DeclarationError, match="Row pattern"):
        Pattern.parse(pattern)


def test_parameters_hold_what_is_declared_and_nothing_else() -> None:
    assert Rows("*.csv").parameters() == "*.csv"
    declared = Rows("*.csv", columns=("a",), header=False)
    assert declared.parameters() == {"pattern": "*.csv", "columns": ["a"], "header": False}


def test_a_page_under_the_name_of_a_text_is_refused(make_source: Any) -> None:
    page = "<!DOCTYPE html><html><body>404 Not Found</body></html>"
    source = make_source({"a.txt": page})
    with pytest.raises(BadFile, match=r"a\.txt: is not plain text but an HTML page"):
        source.rows("*.txt")
    assert [row.string for row in source.rows(Rows("*.txt", format="text"))] == [page]
