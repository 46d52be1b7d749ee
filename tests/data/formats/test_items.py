"""JSON files: lists that are never held as a whole, objects, and objects of rows by key."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.data.formats import encoding
from factory.data.pattern import Rows
from factory.errors import BadFile

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text("abc", max_size=3), VALUES, max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(
    items=st.lists(OBJECTS, max_size=5),
    size=st.integers(1, 20),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
)
def test_a_list_is_read_the_same_in_any_pieces(
    make_source: Any, items: list[Any], size: int, indent: int | None, ascii_only: bool
) -> None:
    written = json.dumps(items, indent=indent, ensure_ascii=ascii_only)
    keyed = json.dumps({str(n): one for n, one in enumerate(items)}, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", size)
        source = make_source({"a.json": written, "b.json": keyed})
        assert [row.record for row in source.rows("a.json")] == items
        rows = source.rows(Rows("b.json", keyed="key"))
    assert [row.record for row in rows] == [{"key": str(n)} | one for n, one in enumerate(items)]


def test_an_object_with_a_row_under_each_key(make_source: Any) -> None:
    source = make_source({"a.json": '{"12": {"q": "x"}, "13": "yes", "14": {"id": 1}, "15": 2 }'})
    rows = source.rows(Rows("*.json", keyed="id"))
    assert [row.record for row in rows if row.bad is None] == [
        {"id": "12", "q": "x"},
        {"id": "13", "value": "yes"},
        {"id": "15", "value": 2},
    ]
    assert [row.bad for row in rows if row.bad] == ["field for the key is in the object"]
    (whole,) = source.rows("*.json")
    assert (whole.position, len(whole.record)) == (None, 4)


def test_empty_lists_and_objects(make_source: Any) -> None:
    source = make_source({"a.json": " [ ] ", "b.json": "{}", "c.json": "\n{}\n"})
    assert source.rows("a.json") == []
    assert [row.record for row in source.rows("b.json")] == [{}]
    assert source.rows(Rows("c.json", keyed="id")) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1, column 1: not JSON: Expecting value"),
        ("[", "line 1, column 2: not JSON"),
        ('[{"a": 1},\n{"a": 2}', "line 2, column 9: not JSON: Expecting ',' or ']'"),
        ('[{"a": 1},\n]', "line 2, column 1: not JSON"),
        ('[{"a": 1}\n{"a": 2}]', "line 2, column 1: not JSON: Expecting ',' or ']'"),
        ('[{"a": 1}] x', "line 1, column 12: not JSON: something follows"),
        ('[{"a": tru}]', "line 1, column 8: not JSON"),
        ('[{"a": "cut', "line 1, column 8: not JSON: Unterminated"),
        ('[{"a": NaN}]', "line 1, column 2: not JSON: NaN is no JSON number"),
        ('[{"a": 1},\n [1]]', "row 2: not a JSON object but list"),
        ('[{"a": 1}, 3]', "row 2: not a JSON object but int"),
        ('"text"', "row 1: not a JSON object but str"),
        ('{"a": 1}\n{"a": 2}', "line 2, column 1: not JSON: something follows"),
    ],
)
@pytest.mark.parametrize("chunk", [3, 2**20])
def test_what_is_no_list_of_objects(
    make_source: Any, monkeypatch: pytest.MonkeyPatch, content: str, message: str, chunk: int
) -> None:
    monkeypatch.setattr(encoding, "CHUNK", chunk)
    source = make_source({"a.json": content})
    with pytest.raises(BadFile, match=rf"a\.json, {message}"):
        source.rows("*.json")


def test_an_error_far_into_a_file_has_its_place(make_source: Any) -> None:
    lines = [f'{{"n": {n}, "text": "{"x" * 100}"}}' for n in range(20_000)]
    lines[15_000] = '{"n": oops}'
    source = make_source({"a.json": "[\n" + ",\n".join(lines) + "\n]"})
    with pytest.raises(BadFile, match=r"line 15002, column 7: not JSON"):
        source.rows("*.json")


def test_a_bad_key_rejects_its_row(make_source: Any) -> None:
    source = make_source({"a.json": '{"\\ud800": {"a": 1}, "b": {"a": 1}}'})
    assert [row.bad for row in source.rows(Rows("*.json", keyed="id"))] == [
        "lone surrogate in text",
        None,
    ]


def test_a_key_that_comes_again_is_rejected(make_source: Any) -> None:
    source = make_source({"a.json": '{"x": {"n": 1}, "y": {"n": 2}, "x": {"n": 3}}'})
    rows = source.rows(Rows("*.json", keyed="id"))
    assert [row.bad for row in rows] == [None, None, "duplicate key in object"]
