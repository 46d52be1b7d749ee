"""Encodings: as declared, by mark, UTF-8, detected where that is allowed, else refused."""

import codecs
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.data.formats import encoding
from factory.data.pattern import Rows
from factory.errors import BadFile, DeclarationError

RUSSIAN = "Пациент жалуется на боль в груди и одышку. Назначено лечение. Температура нормальная.\n"
FRENCH = "Fièvre élevée, thérapie arrêtée, à réévaluer demain.\n"


@pytest.mark.parametrize(
    ("mark", "name"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("suffix", ["txt", "jsonl", "json", "csv"])
def test_a_mark_says_what_a_file_is(make_source: Any, mark: bytes, name: str, suffix: str) -> None:
    written = {
        "txt": "größer, 患者",
        "jsonl": '{"a": "größer, 患者"}\r\n',
        "json": '[{"a": "größer, 患者"}]',
        "csv": 'a\r\n"größer, 患者"\r\n',
    }
    source = make_source({f"x.{suffix}": mark + written[suffix].encode(name)})
    (row,) = source.rows(f"*.{suffix}")
    assert (row.string if suffix == "txt" else row.text("a")) == "größer, 患者"
    used = name.removesuffix("-le").removesuffix("-be")
    assert source.notes.facts()["encodings"] == {used: 1}
    marked = {f"x.{suffix}": f"{used}, by its mark"} if used != "utf-8" else None
    assert source.notes.facts().get("not_utf_8") == marked


def test_a_declared_encoding_is_used_and_recorded(make_source: Any) -> None:
    source = make_source({"a.txt": FRENCH.encode("cp1252")})
    (row,) = source.rows(Rows("*.txt", encoding="cp1252"))
    assert row.string == FRENCH
    assert source.notes.facts() == {
        "encodings": {"cp1252": 1},
        "not_utf_8": {"a.txt": "cp1252, declared"},
    }


def test_a_declared_encoding_that_is_wrong_is_refused_with_the_byte(make_source: Any) -> None:
    source = make_source({"a.txt": "größer".encode()})
    with pytest.raises(BadFile, match=r"a\.txt, byte 2: not ascii"):
        source.rows(Rows("*.txt", encoding="ascii"))
    source = make_source({"a.txt": codecs.BOM_UTF8 + b"a"})
    with pytest.raises(BadFile, match="begins with the mark of UTF-8"):
        source.rows(Rows("*.txt", encoding="cp1252"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_utf16_without_a_mark_is_told(make_source: Any, encoding: str) -> None:
    source = make_source({"a.txt": "größer".encode(f"{encoding}-le")})
    with pytest.raises(BadFile, match=f"Declare {encoding}-le or {encoding}-be"):
        source.rows(Rows("*.txt", encoding=encoding))
    (row,) = source.rows(Rows("*.txt", encoding=f"{encoding}-le"))
    assert row.string == "größer"


def test_nothing_is_guessed_unless_it_is_declared_how_surely(make_source: Any) -> None:
    data = b"plain " * 10 + RUSSIAN.encode("cp1251") * 3
    source = make_source({"a.txt": data})
    with pytest.raises(BadFile, match=r"a\.txt, byte 60: not UTF-8.*may be cp1251.*declare"):
        source.rows("*.txt")
    (row,) = source.rows(Rows("*.txt", min_confidence=0.9))
    assert row.string == data.decode("cp1251")
    assert source.notes.facts()["not_utf_8"]["a.txt"].startswith("cp1251, detected with conf")


def test_encodings_that_fit_equally_are_no_detection(make_source: Any) -> None:
    source = make_source({"a.txt": FRENCH.encode("cp1252") * 20})
    with pytest.raises(BadFile, match=r"byte 2: not UTF-8.*may be any of .*cp1252"):
        source.rows(Rows("*.txt", min_confidence=0.5))


def test_bytes_that_are_no_text_are_refused(make_source: Any) -> None:
    source = make_source({"a.txt": b"ab" + bytes(range(128, 256)) * 4})
    with pytest.raises(BadFile, match=r"byte 2: not UTF-8.*No encoding fits"):
        source.rows(Rows("*.txt", min_confidence=0.1))


@pytest.mark.parametrize("suffix", ["txt", "jsonl", "csv", "json"])
def test_bad_bytes_late_in_a_file_have_their_offset(make_source: Any, suffix: str) -> None:
    before = {"txt": "x", "jsonl": '{"a": "x"}\n', "csv": "a\nx\n", "json": '[{"a": "x'}[suffix]
    many = before * (1 if suffix in ("json", "csv") else 100_000)
    source = make_source({f"a.{suffix}": many.encode() + b"\xff"})
    with pytest.raises(BadFile, match=f"byte {len(many):,}: not UTF-8"):
        source.rows(f"*.{suffix}")


def test_utf8_before_and_something_else_after_is_refused(
    make_source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "CHUNK", 64)
    source = make_source({"a.txt": "größer ".encode() * 20 + "größer".encode("cp1252")})
    with pytest.raises(BadFile, match=r"byte 182: not UTF-8, though characters before it are"):
        source.rows(Rows("*.txt", min_confidence=0.1))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(text=st.text(), name=st.sampled_from(["utf-8", "utf-16", "utf-32"]), size=st.integers(1, 9))
def test_chunks_never_split_a_character(make_source: Any, text: str, name: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", size)
        source = make_source({"a.txt": text.encode(name)})
        (row,) = source.rows(Rows("*.txt", encoding=name))
    if "\0" in text:
        assert row.bad == "NUL character in text"
    else:
        assert row.string == text.removeprefix("\ufeff")


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoding": "utf-9"},
        {"encoding": "hex"},
        {"min_confidence": 0},
        {"min_confidence": 1.1},
        {"delimiter": ""},
        {"quote": "''"},
        {"columns": ("a", "a")},
        {"header": False},
        {"max_ratio": 0},
    ],
)
def test_declarations_that_say_nothing_do_not_load(wrong: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match=r"Rows\('\*\.csv'\)"):
        Rows("*.csv", **wrong)


def test_the_mark_alone_is_an_empty_text(make_source: Any) -> None:
    source = make_source({"a.txt": codecs.BOM_UTF8, "b.txt": b"", "c.txt": codecs.BOM_UTF16_LE})
    assert [row.string for row in source.rows("*.txt")] == ["", "", ""]
