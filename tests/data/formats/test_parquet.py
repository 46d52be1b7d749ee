"""Parquet: rows in batches, values of any type, texts that are none, and damaged files."""

import gzip
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.data.formats import parquet
from factory.errors import BadFile, BadRow


def written(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def test_rows_of_several_groups_and_batches(make_source: Any) -> None:
    count = 3 * parquet.BATCH_ROWS + 1
    table = pa.table(
        {
            "n": list(range(count)),
            "late": [None] * (count - 1) + ["x"],
            "nested": [{"image": {"bytes": b"\0x", "path": str(n)}} for n in range(count)],
        }
    )
    source = make_source({"a.parquet": written(table, row_group_size=100)})
    rows = source.rows("*.parquet")
    assert [row.record["n"] for row in rows] == list(range(count))
    assert (rows[-1].id, rows[-1].record["late"]) == (f"a.parquet#{count}", "x")
    assert rows[1].record["nested"]["image"] == {"bytes": b"\0x", "path": "1"}


def test_compressed_as_a_whole_and_in_an_archive(make_source: Any) -> None:
    data = gzip.compress(written(pa.table({"n": [1, 2]})))
    source = make_source({"a.parquet.gz": data})
    assert [row.record for row in source.rows("*.parquet.gz")] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 2**31 - 1, None, -(2**31)], pa.date32()),
        pa.array([0, 2**60, None, -(2**60)], pa.timestamp("ms")),
        pa.array([0, 2**62, None, -(2**62)], pa.timestamp("us", "UTC")),
    ],
    ids=["date", "timestamp", "zoned"],
)
def test_dates_that_python_has_not_reject_their_rows(make_source: Any, column: pa.Array) -> None:
    rows = make_source({"a.parquet": written(pa.table({"t": column}))}).rows("*.parquet")
    assert [row.bad for row in rows] == [None, parquet.NO_DATE, None, parquet.NO_DATE]
    assert rows[0].record["t"] is not None
    with pytest.raises(BadRow, match=parquet.NO_DATE):
        _ = rows[1].record


def test_texts_that_no_sample_can_hold(make_source: Any) -> None:
    binary = pa.array([b"ok", b"\xff\xfe", b"x\0y", b"end"], pa.binary())
    table = pa.table({"t": binary.view(pa.string())})
    rows = make_source({"a.parquet": written(table)}).rows("*.parquet")
    assert [row.bad for row in rows] == [
        None,
        "text that is not UTF-8",
        "NUL character in text",
        None,
    ]


def test_damaged_files(make_source: Any) -> None:
    data = written(pa.table({"n": list(range(10_000))}), compression="none", use_dictionary=False)
    for content in (b"", b"PAR1", data[:-1], data[: len(data) // 2], b"x" * 1000):
        source = make_source({"a.parquet": content})
        with pytest.raises(BadFile, match=r"a\.parquet, after row 0: damaged or no Parquet"):
            source.rows("*.parquet")


def test_two_columns_of_one_name(make_source: Any) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(BadFile, match="two columns named 'a'"):
        make_source({"a.parquet": written(table)}).rows("*.parquet")
