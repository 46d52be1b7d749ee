"""Records that hold a list, whose items are the rows."""

import json

import pytest

from factory.data.pattern import Rows
from factory.errors import BadFile


def bundle(*names):
    return {"data": {"entry": [{"name": name} for name in names]}}


def test_items_are_counted_through_the_file_and_a_record_without_them_is_rejected(make_source):
    records = [bundle("a", "b"), {"data": {}}, {"data": None}, bundle(), bundle("c")]
    source = make_source({"a.jsonl": "\n".join(map(json.dumps, records))})
    rows = source.rows(Rows("*.jsonl", items="data.entry"))
    assert [(row.id, row.bad or row.record["name"]) for row in rows] == [
        ("a.jsonl#1", "a"),
        ("a.jsonl#2", "b"),
        ("a.jsonl#3", "no items in the record"),
        ("a.jsonl#4", "no items in the record"),
        ("a.jsonl#5", "no items in the record"),
        ("a.jsonl#6", "c"),
    ]


def test_an_item_that_is_no_object_and_a_record_that_is_bad_are_rejected_alone(make_source):
    text = '{"entry": [1, {"a": 1}, "x"]}\n{"entry": [], "entry": []}\n{"entry": [{"a": 2}]}\n'
    rows = make_source({"a.jsonl": text}).rows(Rows("*.jsonl", items="entry"))
    assert [row.bad for row in rows] == [
        "item is no object",
        None,
        "item is no object",
        "duplicate key in object",
        None,
    ]


def test_a_cut_file_still_ends_the_step(make_source):
    source = make_source({"a.jsonl": '{"entry": [{"a": 1}]}\n{"entry": [{"a"'})
    with pytest.raises(BadFile, match=r"a\.jsonl, line 2"):
        source.rows(Rows("*.jsonl", items="entry"))


def test_items_of_json_files_and_tables_have_the_same_form(make_source):
    source = make_source({"a.json": json.dumps([bundle("a"), bundle("b")])})
    rows = source.rows(Rows("a.json", items="data.entry"))
    assert [row.record["name"] for row in rows] == ["a", "b"]
