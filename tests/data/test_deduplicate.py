"""The step `deduplicated`: what is compared, what goes, what is recorded, and its checks."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from factory.data import Dedup, Sample, deduplicate, duplicate_checks, layout, table
from factory.data.steps import steps
from factory.errors import DeclarationError, StepError

WORDS = " ".join(f"word{number}" for number in range(60))


def question(name: str, asked: str, answer: str, *options: str) -> Sample:
    return Sample.question(id=name, question=asked, answer=answer, options=options)


def removed(tmp_path: Path, *samples: Sample, policy: Dedup = Dedup()) -> dict[str, str]:  # noqa: B008
    deduplicate.sign(samples, policy, tmp_path / "signatures")
    found = deduplicate.removed([tmp_path / "signatures"], policy)
    return {row["id"]: f"{row['kind']} {row['kept']}" for row in found.to_pylist()}


@pytest.fixture
def twice(letters, deliver):
    """Letters, of which two say what others say, and one nearly does."""
    rows = [{"id": f"letter-{n}", "text": f"text {n}" if n else ""} for n in range(10)]
    rows += [{"id": "copy-1", "text": "Text, 1."}, {"id": "copy-2", "text": "text 2"}]
    rows += [{"id": "long", "text": f"{WORDS} more"}, {"id": "near", "text": WORDS}]
    deliver(rows)
    return letters


def rows_of(directory: Path) -> list[dict[str, Any]]:
    return table.read(directory / layout.REMOVED).to_pylist()


def test_duplicates_go_and_say_for_which(runner, twice):
    version, records = runner.until(twice, "deduplicated")
    assert all(record.passed for record in records.values()), records
    assert sorted(one.name for one in version.path.iterdir() if one.name[0] != "_") == [
        layout.REMOVED,
        layout.SAMPLES,
    ]
    found = {(row["id"], row["kept"], row["kind"]) for row in rows_of(version.path)}
    # Of equal texts the longer one stays, then the one of the lower id.
    assert found == {
        ("letter-1", "copy-1", "exact"),
        ("letter-2", "copy-2", "exact"),
        ("near", "long", "near"),
    }
    facts = version.manifest.facts
    assert facts["duplicates"] == {"exact": 2, "near": 1}
    assert (facts["rows_read"], facts["rejected_rows"], facts["clean_rows"]) == (14, 1, 13)
    assert version.manifest.rows == 10
    assert version.manifest.licenses == ["LicenseRef-test"]
    assert records["rows_balanced"].summary == "14 read = 10 kept + 1 rejected + 3 duplicates"
    kept = {one.id for one in table.samples(version.path / layout.SAMPLES)}
    divided, records = runner.checked(steps(twice)[3])
    assert all(record.passed for record in records.values()), records
    parts = [table.column(divided.path / layout.split_table(name), "id") for name in twice.split]
    assert {one for part in parts for one in part} == kept


def test_off_keeps_everything_under_the_same_keys(runner, twice):
    off = dataclasses.replace(twice, deduplicate=None)
    assert [step.key for step in steps(off)] == [step.key for step in steps(twice)]
    version, records = runner.until(off, "deduplicated")
    assert all(record.passed for record in records.values()), records
    cleaned = runner.namespace.current(off.key / "clean")
    assert version.manifest.content_id == cleaned.manifest.content_id
    assert version.manifest.parameters == {"deduplicate": None}
    assert rows_of(version.path) == []
    assert "declared off" in steps(off)[2].description


def test_another_policy_makes_this_step_anew_and_no_earlier_one(runner, twice):
    first = [runner.checked(step)[0].id for step in steps(twice)[:3]]
    strict = steps(dataclasses.replace(twice, deduplicate=Dedup(threshold=1.0)))
    again = [runner.step(step) for step in strict[:3]]
    assert [one.reused for one in again] == [True, True, False]
    assert again[2].version.id != first[2]
    assert again[2].version.manifest.facts["duplicates"] == {"exact": 2, "near": 0}


def test_order_and_files_of_the_rows_do_not_matter(runner, twice, deliver, settings):
    first, _ = runner.until(twice, "deduplicated")
    lines = (settings.drops / "letters/letters.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in reversed(lines)]
    deliver(rows[:5])
    deliver(rows[5:], "rest.jsonl")
    second, _ = runner.until(twice, "deduplicated")
    assert second.manifest.content_id == first.manifest.content_id
    assert rows_of(second.path) == rows_of(first.path)


def test_a_form_answer_to_another_question_stays(tmp_path):
    assert (
        removed(tmp_path, question("a", "What is A?", WORDS), question("b", "And B?", WORDS)) == {}
    )


def test_a_question_goes_if_it_asks_offers_and_answers_the_same(tmp_path):
    samples = [
        question("a", "What is A?", f"{WORDS} more", "one", "two"),
        question("again", "what is  A", f"{WORDS} more", "One", "Two"),
        question("nearly", "What is A?", WORDS, "one", "two"),
        question("offers", "What is A?", WORDS, "two", "one"),
        question("bounds", "What is A?", WORDS, "one two"),
        question("yes", "Is it?", "yes"),
        question("no", "Is it?", "no"),
    ]
    assert removed(tmp_path, *samples) == {"again": "exact a", "nearly": "near a"}


def test_a_document_is_never_a_duplicate_of_a_question(tmp_path):
    document = Sample.document(id="d", title="", sections=[("", WORDS)])
    assert removed(tmp_path, document, question("q", "?", WORDS)) == {}


def test_headings_count_and_metadata_does_not(tmp_path):
    def letter(name: str, heading: str, **meta: str) -> Sample:
        return Sample.document(id=name, title="T", sections=[(heading, "x")], meta=meta)

    found = removed(
        tmp_path, letter("a", "H", by="one"), letter("b", "H", by="two"), letter("c", "I")
    )
    assert found == {"b": "exact a"}


def test_batches_do_not_change_what_goes(tmp_path, monkeypatch):
    samples = [
        Sample.document(id=f"{n}", title="", sections=[("", f"text {n % 7}")]) for n in range(40)
    ]
    whole = removed(tmp_path, *samples)
    assert len(whole) == 33
    monkeypatch.setattr(deduplicate, "BATCH_ROWS", 3)
    assert removed(tmp_path, *samples) == whole
    monkeypatch.setattr(deduplicate, "BATCH_CHARACTERS", 1)
    assert removed(tmp_path, *samples) == whole


def test_nothing_to_compare(tmp_path):
    assert removed(tmp_path) == {}


def test_one_id_twice_is_refused(tmp_path):
    twins = [question("q", "A?", "a"), question("q", "B?", "b")]
    with pytest.raises(StepError, match="Id 'q' is on 2 documents"):
        removed(tmp_path, *twins)


def test_a_threshold_that_cannot_work_is_refused_when_declared():
    with pytest.raises(DeclarationError, match=r"threshold of 0\.1 cannot be used"):
        Dedup(threshold=0.1)


@pytest.fixture
def directory(runner, twice) -> Path:
    return runner.until(twice, "deduplicated")[0].path


def change_removed(directory: Path, rows: list[dict[str, Any]]) -> None:
    path = table.file(directory / layout.REMOVED, 0)
    schema = pq.read_schema(path)
    pq.write_table(table.pa.Table.from_pylist(rows, schema=schema), path)


def test_a_lost_sample_fails_two_checks(directory):
    path = directory / layout.SAMPLES
    table.write_samples(path, list(table.samples(path))[1:])
    result = duplicate_checks.kept_or_removed(directory)
    assert not result.passed
    assert result.summary == "13 cleaned is not 9 kept + 3 removed"
    result = duplicate_checks.rows_balanced(directory)
    assert not result.passed
    assert result.summary == "14 read is not 9 kept + 1 rejected + 3 duplicates"


def test_a_sample_that_is_kept_and_removed(directory):
    rows = rows_of(directory)
    kept = rows[0]["kept"]
    change_removed(directory, [rows[0] | {"id": kept}, *rows[1:]])
    result = duplicate_checks.kept_or_removed(directory)
    assert not result.passed
    assert "1 are both kept and removed, 0 removed twice" in result.summary
    change_removed(directory, [rows[0], rows[0], rows[2]])
    assert not duplicate_checks.kept_or_removed(directory).passed


def test_a_sample_removed_for_one_that_is_gone(directory):
    assert duplicate_checks.removed_for_kept(directory).passed
    rows = rows_of(directory)
    change_removed(directory, [rows[0] | {"kept": rows[1]["id"]}, *rows[1:]])
    result = duplicate_checks.removed_for_kept(directory)
    assert not result.passed
    assert result.facts["for_missing"] == 1


def test_rejected_rows_that_the_balance_does_not_have(directory):
    path = directory / "_manifest.json"
    manifest = json.loads(path.read_text())
    manifest["facts"]["rejected_rows"] = 0
    path.write_text(json.dumps(manifest))
    assert not duplicate_checks.rows_balanced(directory).passed
