"""Rows at the edge, through the steps: odd texts, an id twice, conversations that are none."""

import json
from typing import Any

import pytest

from factory.data import Dataset, LocalFiles, Rejected, Row, Sample, layout, table
from factory.data.chat import openai, tools
from factory.keys import private

TEXTS = {
    "one": "x",
    "huge": "Wort " * 280_000,
    "japanese": "漢字かな交じり文",
    "arabic": "نص عربي",
    "thai": "ภาษาไทย",
    "joined": "👩🏽\u200d⚕️ e\u0301",
    "zero width between": "a\u200bb\ufeffc",
    "controls": "a\x01b\x1f",
    "last": "\U0010ffff",
}
REFUSED = {
    "surrogate": ("a\ud800b", "lone surrogate in text"),
    "pair the wrong way round": ("\udc00\ud800", "lone surrogate in text"),
    "NUL": ("a\x00b", "NUL character in text"),
    "zero width": ("\u200b\ufeff", "error: ValueError"),
    "white": (" \u3000\n", "error: ValueError"),
}


def letters(clean: Any, **fields: Any) -> Dataset:
    return Dataset(
        key=private("text/letters"),
        license="LicenseRef-test",
        source=LocalFiles(folder="letters", rows="*.jsonl", classification="private"),
        clean=clean,
        **fields,
    )


def letter(row: Row) -> Sample | Rejected:
    return Sample.document(id=row.text("id"), title="", sections=[("", row.text("text"))])


def talk(row: Row) -> Sample | Rejected:
    messages = openai.messages(row.record)
    return Sample.conversation(id=row.text("id"), messages=messages, tools=tools(row.record))


def rejected(directory: Any) -> dict[str, str]:
    found = table.read(directory / layout.REJECTED).to_pylist()
    return {row["id"]: row["reason"] for row in found}


def test_texts_of_any_kind_stay_or_go_with_a_reason(runner, deliver):
    texts = TEXTS | {name: text for name, (text, _) in REFUSED.items()}
    deliver([{"id": name, "text": text} for name, text in texts.items()])
    version, records = runner.until(letters(letter, max_errors=2), "clean")
    kept = {one.id: one.as_dict()["document"] for one in samples(version)}
    assert {name: one["sections"][0]["text"] for name, one in kept.items()} == TEXTS
    assert list(rejected(version.path).values()) == [reason for _, reason in REFUSED.values()]
    assert records["rows_accounted"].passed
    assert records["ids_unique"].passed


def broken(row: Row) -> Sample | Rejected:
    """Makes a surrogate where the row has none."""
    return Sample.document(id=row.text("id"), title="", sections=[("", "a\ud800")])


def test_a_surrogate_that_clean_makes(runner, deliver):
    deliver([{"id": "a"}])
    version, _ = runner.until(letters(broken, max_errors=0), "clean")
    assert list(rejected(version.path).values()) == ["lone surrogate in text"]


def with_nul(row: Row) -> Sample | Rejected:
    """Makes a NUL where the row has none, or writes how JSON escapes one."""
    text = "a\0" if row.text("id") == "a" else "\\u0000"
    return Sample.document(id=row.text("id"), title="", sections=[("", text)])


def test_a_nul_that_clean_makes(runner, deliver):
    deliver([{"id": "a"}, {"id": "b"}])
    version, _ = runner.until(letters(with_nul, max_errors=0), "clean")
    assert list(rejected(version.path).values()) == ["NUL character in text"]
    assert [one.id for one in samples(version)] == ["b"]


def samples(version: Any) -> list[Sample]:
    return list(table.samples(version.path / layout.SAMPLES))


@pytest.mark.parametrize("files", [["a", "a"], ["a", "b"]], ids=["within", "across"])
def test_an_id_that_occurs_twice(runner, deliver, files):
    rows = [{"id": "twin", "text": f"text {number}"} for number in range(2)]
    if files == ["a", "a"]:
        deliver(rows, "a.jsonl")
    else:
        for name, row in zip(files, rows, strict=True):
            deliver([row], f"{name}.jsonl")
    version, records = runner.until(letters(letter), "clean")
    assert len(samples(version)) == 2
    assert not records["ids_unique"].passed
    assert records["ids_unique"].facts["repeated"] == 1
    assert runner.namespace.current(version.key) is None


def test_conversations_that_are_none_are_counted_by_reason(runner, deliver):
    user = {"role": "user", "content": "Who?"}
    answer = {"role": "assistant", "content": "Ada."}
    null = {"role": "assistant", "content": None}
    result = {"role": "tool", "tool_call_id": "a", "content": "found"}
    rows = {
        "good": [user, answer],
        "null": [user, null],
        "orphan": [user, result, answer],
        "again": [user, user, answer, answer],
        "empty": [user, {"role": "assistant", "content": ""}],
        "mute": [user],
        "critic": [{"role": "critic", "content": "Hm."}, answer],
    }
    deliver([{"id": name, "messages": one} for name, one in rows.items()])
    version, records = runner.until(letters(talk, max_errors=0), "deduplicated")
    found = {one.id: one.as_dict()["conversation"]["messages"] for one in samples(version)}
    assert {name: [turn["trained"] for turn in one] for name, one in found.items()} == {
        "good": [False, True],
        "again": [False, False, True, True],
    }
    assert records["rows_balanced"].passed
    clean = runner.namespace.current(letters(talk).key / "clean")
    assert json.loads(json.dumps(layout.facts_of(clean.path)["rejected"])) == {
        "empty assistant turn": 2,
        "tool result without a call": 1,
        "no assistant turn": 1,
        "unknown role": 1,
    }
