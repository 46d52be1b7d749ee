"""Each check that every dataset gets, made to fail by damaging a real version."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.data import Rejected, Row, Sample, checks, free_checks, layout, table
from factory.data.checks import Check, CheckResult
from factory.data.steps import steps


def rewrite(path: Path, samples: list[Sample]) -> None:
    table.write_samples(path, samples)


def change_facts(directory: Path, **facts: Any) -> None:
    path = directory / "_manifest.json"
    manifest = json.loads(path.read_text())
    manifest["facts"] |= facts
    path.write_text(json.dumps(manifest))


@pytest.fixture
def raw(runner, letters) -> Path:
    return runner.until(letters, "raw")[0].path


@pytest.fixture
def cleaned(runner, letters) -> Path:
    return runner.until(letters, "clean")[0].path


@pytest.fixture
def divided(runner, letters) -> Path:
    return runner.until(letters, "split")[0].path


def test_a_changed_and_a_missing_file(raw):
    assert free_checks.files_intact(raw).passed
    file = raw / layout.RAW_FILES / "letters.jsonl"
    content = file.read_bytes()
    file.write_bytes(content[:-2] + b"x\n")
    assert "letters.jsonl differs" in free_checks.files_intact(raw).summary
    file.unlink()
    result = free_checks.files_intact(raw)
    assert not result.passed
    assert "letters.jsonl is missing" in result.summary


def test_another_schema(cleaned):
    path = table.file(cleaned / layout.SAMPLES, 0)
    assert free_checks.schema(cleaned).passed
    content = pq.read_table(path)
    pq.write_table(content.drop_columns("meta").append_column("x", [[1] * len(content)]), path)
    assert free_checks.schema(cleaned).summary == "column meta is missing; column x is unknown"
    position = content.schema.get_field_index("id")
    other = content.set_column(position, "id", pa.array(range(len(content))))
    pq.write_table(other, path)
    assert free_checks.schema(cleaned).summary == "column id is int64, not string"


def test_repeated_ids(cleaned):
    path = cleaned / layout.SAMPLES
    samples = list(table.samples(path))
    rewrite(path, [*samples, *samples[:5]])
    result = free_checks.ids_unique(cleaned)
    assert not result.passed
    assert result.summary == (
        "id 'letter-1' is repeated; id 'letter-2' is repeated; id 'letter-3' is repeated; "
        "and 2 more"
    )


def test_rows_that_nobody_accounts_for(cleaned):
    path = cleaned / layout.SAMPLES
    rewrite(path, list(table.samples(path))[1:])
    result = free_checks.rows_accounted(cleaned)
    assert not result.passed
    assert result.summary == "10 read is not 8 kept + 1 rejected"


def test_no_rows(cleaned):
    rewrite(cleaned / layout.SAMPLES, [])
    assert not free_checks.has_rows(cleaned).passed


def test_a_group_in_two_splits_and_a_lost_one(divided, letters):
    disjoint = free_checks.Disjoint(tuple(letters.split))
    nothing_lost = free_checks.NothingLost(tuple(letters.split))
    assert disjoint(divided).passed
    assert nothing_lost(divided).passed
    test_path = divided / layout.split_table("test")
    train = list(table.samples(divided / layout.split_table("train")))
    kept = list(table.samples(test_path))
    rewrite(test_path, [*kept, train[0]])
    assert not disjoint(divided).passed
    assert f"group {train[0].id!r} is in train and test" in disjoint(divided).summary
    assert not nothing_lost(divided).passed
    rewrite(test_path, kept)
    rewrite(divided / layout.split_table("train"), train[1:])
    assert disjoint(divided).passed
    assert not nothing_lost(divided).passed
    rewrite(divided / layout.split_table("train"), [*train[1:], train[1]])
    assert not nothing_lost(divided).passed, "the same number, but one twice"


def put_groups(divided: Path, **counts: int) -> None:
    for name, count in counts.items():
        samples = [
            Sample.document(id=f"{name}-{n}", title="", sections=[("", "x")], group=f"{name}-{n}")
            for n in range(count)
        ]
        rewrite(divided / layout.split_table(name), samples)


@pytest.mark.parametrize(
    ("counts", "filled", "passes"),
    [
        ({"train": 800, "validation": 100, "test": 100}, {}, True),
        ({"train": 775, "validation": 125, "test": 100}, {}, True),
        ({"train": 770, "validation": 130, "test": 100}, {}, False),
        ({"train": 840, "validation": 60, "test": 100}, {}, False),
        ({"train": 1, "validation": 1, "test": 1}, {"validation": 1, "test": 1}, True),
        ({"train": 4, "validation": 10, "test": 1}, {}, False),
    ],
)
def test_shares_within_what_chance_gives(divided, letters, counts, filled, passes):
    put_groups(divided, **counts)
    change_facts(divided, filled=filled)
    result = free_checks.Shares(tuple(letters.split.items()))(divided)
    assert result.passed is passes, result.summary
    assert set(result.facts) == set(letters.split)


def test_declared_bounds(cleaned):
    assert checks.rows(9, 9).function(cleaned).passed
    assert not checks.rows(10, 12).function(cleaned).passed
    assert not checks.rows(0, 8).function(cleaned).passed
    assert checks.rejected("no text", at_most=0.1).function(cleaned).passed
    result = checks.rejected("no text", at_most=0.09).function(cleaned)
    assert not result.passed
    assert result.facts["share"] == 0.1
    assert checks.rejected("other", at_most=0.0).function(cleaned).passed
    assert checks.rejected("no text", at_most=1).name == "rejected_no_text"


def test_bounds_do_not_judge_a_limited_version(runner, letters):
    runner.until(letters, "raw")
    version = runner.step(steps(letters)[1], limit=3).version
    assert checks.rows(9, 9).function(version.path).passed
    assert "not judged" in checks.rows(9, 9).function(version.path).summary
    assert not checks.rows(0, 1).function(version.path).passed, "more than allowed is too many"
    assert checks.rejected("no text", at_most=0).function(version.path).passed


def test_a_check_that_raises_has_not_passed(runner, letters):
    def broken(directory: Path) -> CheckResult:
        raise OSError(f"no such thing in {directory.name}")

    dataset = dataclasses.replace(
        letters, checks=[Check("broken", broken), Check("soft", broken, blocking=False)]
    )
    version, records = runner.until(dataset, "clean")
    assert records["broken"].summary.startswith("the check could not run: OSError")
    assert not records["broken"].passed
    assert not records["soft"].blocking
    assert version.manifest.checks == [
        *("broken", "has_rows", "ids_unique", "rows_accounted", "schema"),
    ]
    assert runner.namespace.current(dataset.key / "clean") is None


def test_a_reason_too_rare_for_the_manifest_is_counted_all_the_same(runner, letters, deliver):
    reasons = [f"reason {n % 60}" for n in range(120)] + ["rare"]
    deliver([{"id": f"{n}", "text": text} for n, text in enumerate(["kept", *reasons])])

    def refusing(row: Row) -> Sample | Rejected:
        text = row.text("text")
        if text != "kept":
            return Rejected(text)
        return Sample.document(id=row.text("id"), title="", sections=[("", text)])

    dataset = dataclasses.replace(letters, clean=refusing)
    cleaned = runner.until(dataset, "clean")[0].path
    assert "rare" not in layout.facts_of(cleaned)["rejected"]
    assert not checks.rejected("rare", at_most=0).function(cleaned).passed
    assert checks.rejected("rare", at_most=0.01).function(cleaned).passed
