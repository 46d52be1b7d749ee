"""Tables: cells with line ends, names of columns, rows that do not fit, quotes that are none."""

import csv
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.data.formats import encoding
from factory.data.pattern import Rows
from factory.errors import BadFile


def records(source: Any, rows: str | Rows) -> list[dict[str, str]]:
    return [dict(row.record) for row in source.rows(rows)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_row_is_a_record(make_source: Any, end: str) -> None:
    lines = ["id,text", '1,"two, parts"', "", '2,"a ""quote"""', "3,"]
    source = make_source({"a.csv": end.join(lines)})
    rows = source.rows("*.csv")
    assert [row.id for row in rows] == ["a.csv#1", "a.csv#2", "a.csv#3"]
    assert [row.text("text") for row in rows] == ["two, parts", 'a "quote"', ""]


def test_line_ends_inside_cells_stay_as_they_are(make_source: Any) -> None:
    source = make_source({"a.csv": 'id,t\r\n1,"one\ntwo\r\nthree\rfour"\r\n2,"x"\r\n'})
    assert records(source, "*.csv") == [
        {"id": "1", "t": "one\ntwo\r\nthree\rfour"},
        {"id": "2", "t": "x"},
    ]


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(table=st.lists(st.tuples(CELL, CELL), max_size=6), size=st.integers(1, 16))
def test_what_was_written_is_read(
    make_source: Any, table: list[tuple[str, str]], size: int
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *table])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", size)
        source = make_source({"a.csv": buffer.getvalue()})
        assert [tuple(row.values()) for row in records(source, "*.csv")] == table


def test_columns_and_delimiters_as_declared(make_source: Any) -> None:
    source = make_source({"a.csv": "1;x\n2;y\n", "b.tsv": 'k\tv\n1\t"a\tb"\n', "c.csv": "k,k\n1,2"})
    assert records(source, Rows("a.csv", columns=("n", "t"), header=False, delimiter=";")) == [
        {"n": "1", "t": "x"},
        {"n": "2", "t": "y"},
    ]
    assert records(source, "*.tsv") == [{"k": "1", "v": "a\tb"}]
    assert records(source, Rows("c.csv", columns=("one", "two"))) == [{"one": "1", "two": "2"}]


def test_odd_names_of_columns_stay_as_they_are(make_source: Any) -> None:
    source = make_source({"a.csv": "id, url,\n1,x,y\n"})
    assert records(source, "*.csv") == [{"id": "1", " url": "x", "": "y"}]


def test_quotes_that_are_letters(make_source: Any) -> None:
    source = make_source({"a.tsv": 'a\tb\n5" cut\t"x\n'})
    with pytest.raises(BadFile, match=r"a\.tsv, line 2: not a table: .*declare Rows\(quote=None\)"):
        source.rows("*.tsv")
    assert records(source, Rows("*.tsv", quote=None)) == [{"a": '5" cut', "b": '"x'}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b,a\n1,2,3\n", "line 1, column 3: has the name of an earlier column"),
        ("\n\na,a\n", "line 3, column 2: has the name of an earlier column"),
        ('a,b\n1,2\n"x\ny",1,2\n', "line 3: has 3 cells where 2 columns are"),
        ("a,b\n1\n", "line 2: has 1 cells where 2 columns are"),
        ('a,b\n1,"open\nmore\n', "line 2: not a table: unexpected end of data"),
        ('a,b\n1,"x"y\n', "line 2: not a table"),
    ],
)
def test_what_is_no_table(make_source: Any, content: str, message: str) -> None:
    source = make_source({"a.csv": content})
    with pytest.raises(BadFile, match=rf"a\.csv(: |, ){message}"):
        source.rows("*.csv")


def test_declared_columns_must_be_as_many(make_source: Any) -> None:
    source = make_source({"a.csv": "a,b\n1,2\n"})
    with pytest.raises(BadFile, match="line 1: has 2 columns, where 3 are declared"):
        source.rows(Rows("*.csv", columns=("a", "b", "c")))


def test_ragged_rows_may_be_rejected_alone(make_source: Any) -> None:
    source = make_source({"a.csv": "a,b\n1,2\n1\n1,2,3\n3,4\n"})
    rows = source.rows(Rows("*.csv", ragged="reject"))
    bad = "more or fewer cells than columns"
    assert [(row.position, row.bad) for row in rows] == [(1, None), (2, bad), (3, bad), (4, None)]


def test_a_nul_rejects_its_row(make_source: Any) -> None:
    rows = make_source({"a.csv": "a,b\n1,x\0y\n2,z\n"}).rows("*.csv")
    assert [row.bad for row in rows] == ["NUL character in text", None]


def test_a_cell_of_several_megabytes(make_source: Any) -> None:
    (row,) = make_source({"a.csv": f'a\n"{"word, " * 500_000}"\n'}).rows("*.csv")
    assert len(row.text("a")) == 3_000_000
