"""Odd files through the step `clean`: what was read and rejected is in the manifest."""

import gzip
import json
from pathlib import Path
from typing import Any

from factory.data import Dataset, LocalFiles, Rejected, Row, Rows, Sample
from factory.data.layout import facts_of
from factory.keys import private
from factory.settings import Settings


def clean(row: Row) -> Sample | Rejected:
    text = row.text("text")
    meta = {"late": row.text("late")} if row.record["late"] else {}
    return Sample.document(id=row.id, title="", sections=[("", text)], meta=meta)


def dataset(rows: str | Rows) -> Dataset:
    return Dataset(
        key=private("text/odd"),
        license="LicenseRef-test",
        source=LocalFiles(folder="odd", rows=rows, classification="private"),
        clean=clean,
        split={"train": 1.0},
    )


def folder(settings: Settings) -> Path:
    made = settings.drops / "odd"
    made.mkdir()
    return made


def test_a_field_that_is_null_for_long(runner: Any, settings: Settings) -> None:
    lines = [{"text": f"text {n}", "late": None} for n in range(2_500)]
    lines += [{"text": "last", "late": "there"}, {"text": "x\0", "late": None}]
    body = "".join(json.dumps(one) + "\n\n" for one in lines) + '{"text": "a", "text": "b"}'
    (folder(settings) / "a.jsonl.gz").write_bytes(gzip.compress(body.encode()))
    version, records = runner.until(dataset("*.jsonl.gz"), "clean")
    assert all(record.passed for record in records.values())
    facts = facts_of(version.path)
    assert (version.manifest.rows, facts["rows_read"]) == (2_501, 2_503)
    assert facts["rejected"] == {"NUL character in text": 1, "duplicate key in object": 1}
    assert facts["reading"] == {"encodings": {"utf-8": 1}}


def test_a_table_of_another_encoding(runner: Any, settings: Settings) -> None:
    text = "größer;\r\nkürzer;ja\r\n"
    (folder(settings) / "a.csv").write_bytes(text.encode("cp1252"))
    rows = Rows("*.csv", encoding="cp1252", delimiter=";", columns=("text", "late"), header=False)
    version, _ = runner.until(dataset(rows), "clean")
    facts = facts_of(version.path)
    assert version.manifest.rows == 2
    assert facts["reading"]["not_utf_8"] == {"a.csv": "cp1252, declared"}
    assert version.manifest.parameters["rows"]["encoding"] == "cp1252"
