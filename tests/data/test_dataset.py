"""A declaration to directories, end to end, and what a declaration may not say."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.data import (
    Dataset,
    Dedup,
    Derived,
    Git,
    Http,
    LocalFiles,
    PartnerDrop,
    PythonPackage,
    Rejected,
    Row,
    Sample,
    checks,
    layout,
    table,
)
from factory.data.kinds import Message
from factory.data.steps import steps
from factory.errors import ClassificationError, DeclarationError, SourceError, StepError
from factory.keys import Key, private, public

REVISION = "0123456789" * 4


def some_clean(row: Row) -> Sample | Rejected:
    return Rejected("all")


def declared(key: Key, **changes: Any) -> Dataset:
    defaults: dict[str, Any] = {
        "license": "CC0-1.0",
        "source": Git(url="https://example.org/x", revision=REVISION, rows="*.jsonl"),
        "clean": some_clean,
    }
    return Dataset(key=key, **(defaults | changes))


def test_ten_rows_become_four_kinds_of_assets(runner, letters):
    version, records = runner.until(letters, "split")
    assert all(record.passed for record in records.values()), records
    clean_version = runner.namespace.current(letters.key / "clean")
    assert clean_version.manifest.rows == 9
    assert clean_version.manifest.facts["rows_read"] == 10
    assert clean_version.manifest.facts["rejected"] == {"no text": 1}
    assert clean_version.manifest.licenses == ["LicenseRef-test"]
    samples = list(table.samples(clean_version.path / layout.SAMPLES))
    assert {one.source for one in samples} == {"private/text/letters"}
    assert {one.license for one in samples} == {"LicenseRef-test"}
    assert all(one.group == one.id for one in samples)
    parts = {
        name: {one.id for one in table.samples(version.path / layout.split_table(name))}
        for name in letters.split
    }
    assert all(parts.values()), "no split is empty"
    assert set.union(*parts.values()) == {one.id for one in samples}


def test_steps_name_keys_inputs_and_checks(letters):
    made = steps(letters)
    assert [step.name for step in made] == [
        *("raw", "clean", "deduplicated", "split"),
        *("energon/train", "energon/validation", "energon/test"),
    ]
    assert [step.key.path for step in made][-1] == "private/text/letters/energon/test"
    assert made[0].inputs == ()
    assert made[1].inputs == (letters.key / "raw",)
    assert made[2].inputs == (letters.key / "clean",)
    assert made[3].inputs == (letters.key / "deduplicated",)
    assert made[6].inputs == (letters.key / "split",)
    assert [check.name for check in made[0].checks] == ["files_intact"]
    assert all(check.blocking for step in made for check in step.checks)


def test_a_second_run_reuses_everything(runner, letters):
    first = [runner.checked(step)[0] for step in steps(letters)[:4]]
    again = [runner.step(step) for step in steps(letters)[:4]]
    assert all(result.reused for result in again)
    assert [result.version.id for result in again] == [version.id for version in first]


def test_a_new_delivery_makes_new_versions(runner, letters, deliver):
    first, _ = runner.until(letters, "clean")
    deliver([{"id": "more", "text": "text"}], "more.jsonl")
    second, _ = runner.until(letters, "clean")
    assert second.id != first.id
    assert second.manifest.rows == 10


def test_the_same_rows_in_other_files_have_the_same_content(runner, letters, deliver):
    first, _ = runner.until(letters, "clean")
    rows = [{"id": f"letter-{n}", "text": f"text {n}"} for n in range(9, 0, -1)]
    deliver(rows[:4])
    deliver(rows[4:], "rest.jsonl")
    second, _ = runner.until(letters, "clean")
    assert second.manifest.content_id == first.manifest.content_id
    assert second.id != first.id, "but it was made from other files"


def test_a_limit_marks_clean_and_all_that_follows_but_not_raw(runner, letters):
    raw, clean_step, deduplicated_step, split_step, *_ = steps(letters)
    full = runner.checked(raw)[0]
    limited_raw = runner.step(raw, limit=5)
    assert limited_raw.reused
    assert limited_raw.version.id == full.id
    limited = runner.step(clean_step, limit=5).version
    assert limited.manifest.limit == 5
    assert limited.manifest.facts["rows_read"] == 5
    kept = runner.step(deduplicated_step, inputs={limited.key: limited}).version
    assert kept.manifest.limit == 5
    divided = runner.step(split_step, inputs={kept.key: kept}).version
    assert divided.manifest.limit == 5
    assert runner.step(clean_step).version.id != limited.id


def test_a_row_that_raises_is_rejected_and_private_text_stays_out(runner, letters, deliver):
    deliver([{"id": f"l{n}", "text": "good"} for n in range(150)])
    deliver([{"id": "bad", "text": {"name": "MARKER"}}], "bad.jsonl")
    version, records = runner.until(letters, "clean")
    assert all(record.passed for record in records.values())
    (refused,) = _rejected(version.path)
    assert refused == {
        "file": "bad.jsonl",
        "id": "bad.jsonl#1",
        "reason": "error: TypeError",
        "excerpt": None,
    }


def test_too_many_errors_fail_the_step_and_name_the_first(runner, letters, deliver):
    deliver([{"id": f"l{n}", "text": 1 if n < 7 else "x"} for n in range(20)])
    runner.until(letters, "raw")
    clean_step = steps(dataclasses.replace(letters, max_errors=3))[1]
    with pytest.raises(StepError, match=r"raised on 4 of 4 rows, max_errors allows 3") as caught:
        runner.step(clean_step)
    assert "letters.jsonl#1: error: TypeError" in str(caught.value)
    assert runner.namespace.versions(letters.key / "clean") == []
    clean_step = steps(dataclasses.replace(letters, max_errors=0.34))[1]
    with pytest.raises(StepError, match=r"7 of 20 rows, max_errors allows 34.00%"):
        runner.step(clean_step)
    clean_step = steps(dataclasses.replace(letters, max_errors=0.35))[1]
    assert runner.step(clean_step).version.manifest.rows == 13


def test_duplicate_ids_fail_their_check_and_keep_the_old_version(runner, letters, deliver):
    old, _ = runner.until(letters, "clean")
    deliver([{"id": "twin", "text": "a"}, {"id": "twin", "text": "b"}], "twins.jsonl")
    version, records = runner.until(letters, "clean")
    assert not records["ids_unique"].passed
    assert records["ids_unique"].facts["repeated"] == 1
    assert version.id != old.id
    assert runner.namespace.current(letters.key / "clean").id == old.id


def test_zero_rows_fail_their_check(runner, letters, deliver):
    deliver([{"id": "only", "text": ""}])
    _, records = runner.until(letters, "clean")
    assert not records["has_rows"].passed
    assert "no text" in records["has_rows"].summary


def test_a_step_without_its_input_says_what_to_do(runner, letters):
    with pytest.raises(StepError, match=r"reads private/text/letters/raw, which has no current"):
        runner.step(steps(letters)[1])


def test_a_damaged_input_is_not_read_and_its_repair_makes_all_well(runner, letters):
    cleaned, _ = runner.until(letters, "clean")
    (table_file,) = table.files(cleaned.path / layout.SAMPLES)
    whole = table_file.read_bytes()
    table_file.chmod(0o644)
    table_file.write_bytes(whole[:-1] + b"!")
    with pytest.raises(StepError, match=r"clean@\w+ is damaged .*Materialize private/text/letters"):
        runner.step(steps(letters)[2])
    assert not list(runner.namespace.versions(letters.key / "deduplicated"))
    runner.until(letters, "split")
    assert table_file.read_bytes() == whole


class Panic(BaseException):
    """As packages written in Rust raise it."""


@pytest.mark.parametrize(
    "error",
    [GeneratorExit("MARKER"), KeyboardInterrupt("MARKER"), SystemExit("MARKER"), Panic("MARKER")],
    ids=lambda one: type(one).__name__,
)
def test_an_error_that_says_something_is_one_of_its_row_whatever_its_kind(runner, letters, error):
    def raising(row: Row) -> Sample | Rejected:
        raise error

    declared = dataclasses.replace(letters, clean=raising, max_errors=100)
    runner.until(letters, "raw")
    version = runner.step(steps(declared)[1]).version
    assert version.manifest.facts["rejected"] == {f"error: {type(error).__name__}": 10}


def test_an_interruption_ends_the_step(runner, letters):
    def interrupted(row: Row) -> Sample | Rejected:
        raise KeyboardInterrupt

    runner.until(letters, "raw")
    with pytest.raises(KeyboardInterrupt):
        runner.step(steps(dataclasses.replace(letters, clean=interrupted))[1])


ODD: list[Callable[[], Any]] = [
    lambda: Sample.question(id="1", question="q", answer="a", license=["MIT"]),  # type: ignore[arg-type]
    lambda: Sample.question(id="1", question="q", answer="a", group=5),  # type: ignore[arg-type]
    lambda: Sample.question(id="1", question="q", answer="a", meta={1: "x"}),  # type: ignore[dict-item]
    lambda: Sample.conversation(id="1", messages=[Message.of("assistant", "a", name=5)]),  # type: ignore[arg-type]
    lambda: Sample.conversation(id="1", messages=[Message.of("assistant", "a", trained=1)]),  # type: ignore[arg-type]
    lambda: Sample.conversation(id="1", messages=[Message.of("assistant", "a")], tools=5),  # type: ignore[arg-type]
    lambda: Rejected("a\ud800"),
]


@pytest.mark.parametrize("make", ODD, ids=range(len(ODD)))
def test_a_sample_with_a_field_of_another_type_is_an_error_of_its_row(runner, letters, make):
    declared = dataclasses.replace(letters, clean=lambda _: make(), max_errors=100)
    runner.until(letters, "raw")
    facts = runner.step(steps(declared)[1]).version.manifest.facts
    assert sum(facts["rejected"].values()) == 10
    assert all(reason.startswith("error: ") for reason in facts["rejected"])


def test_absent_drop_folder_fails_only_when_the_step_runs(runner, letters, settings):
    missing = dataclasses.replace(
        letters, source=LocalFiles(folder="nobody", rows="*.jsonl", classification="private")
    )
    (raw, *_) = steps(missing)
    with pytest.raises(SourceError, match=r"drop folder .*nobody is not there"):
        runner.step(raw)
    runner.settings = settings.model_copy(update={"drops": None})
    with pytest.raises(SourceError, match="FACTORY_DROPS is not set"):
        runner.step(raw)


def test_derived_samples_keep_their_classification(runner, letters):
    runner.until(letters, "clean")
    derived = Dataset(
        key=private("text/short_letters"),
        license="LicenseRef-test",
        source=Derived(datasets=(letters,)),
        clean=_from_sample,
    )
    version, records = runner.until(derived, "clean")
    assert version.manifest.rows == 9
    assert all(record.passed for record in records.values())
    assert steps(derived)[0].inputs == (letters.key / "clean",)
    with pytest.raises(ClassificationError) as caught:
        dataclasses.replace(derived, key=public("text/short_letters"))
    assert str(caught.value) == (
        "public/text/short_letters reads private/text/letters, so it must be private.\n"
        'Write key=private("text/short_letters") and move the file to '
        "definitions/datasets/private/text/short_letters.py."
    )


def _from_sample(row: Row) -> Sample | Rejected:
    text = row.record["document"]["sections"][0]["text"]
    return Sample.document(id=row.text("id"), title="", sections=[("", text)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: declared(public("a"), license=" "), "no SPDX expression"),
        (lambda: declared(public("a"), license="CC0"), "no SPDX expression"),
        (lambda: declared(public("a"), split={"train": 0.5}), "add up to 0.5, not 1"),
        (lambda: declared(public("a"), split={"train": 1.5, "test": -0.5}), "above 0"),
        (lambda: declared(public("a"), split={}), "above 0"),
        (lambda: declared(public("a"), max_errors=1.5), "max_errors is 1.5"),
        (lambda: declared(public("a"), max_errors=float("nan")), "max_errors is nan"),
        (lambda: declared(public("a"), max_errors=-1), "max_errors is -1"),
        (
            lambda: declared(public("a"), checks=[checks.rows(1, 2), checks.rows(2, 3)]),
            "two checks named 'rows'",
        ),
        (lambda: checks.rows(3, 2), "0 <= low <= high"),
        (lambda: checks.rows("1", 2), "whole numbers"),  # type: ignore[arg-type]
        (lambda: checks.rejected("x", at_most="1"), "between 0 and 1"),  # type: ignore[arg-type]
        (lambda: checks.rejected("x", at_most=2), "between 0 and 1"),
        (lambda: Git(url="https://x.org/y", revision="main", rows="*"), "all 40 hexadecimal"),
        (lambda: Git(url="--upload-pack=x", revision=REVISION, rows="*"), "cannot be used"),
        (lambda: Http(url="ftp://x", sha256="0" * 64, rows="*"), "not an http or https"),
        (lambda: Http(url="https://x", sha256="0" * 63, rows="*"), "64 hexadecimal"),
        (
            lambda: PythonPackage(name="a b", version="1", sha256="0" * 64, rows="*"),
            "package name 'a b'",
        ),
        (
            lambda: PythonPackage(name="a", version=">=1", sha256="0" * 64, rows="*"),
            "one exact version",
        ),
        (lambda: LocalFiles(folder="../x", rows="*", classification="private"), "no '..'"),
        (lambda: LocalFiles(folder="/x", rows="*", classification="private"), "not absolute"),
        (lambda: LocalFiles(folder="x", rows="../*", classification="private"), "names no files"),
        (lambda: LocalFiles(folder="x", rows="*.json//a", classification="private"), "not XML"),
        (lambda: PartnerDrop(folder="../x", rows="*"), "no '..'"),
        (lambda: PartnerDrop(folder="", rows="*"), "not empty"),
        (lambda: PartnerDrop(folder="x", rows=""), "names no files"),
        (lambda: Derived(datasets=()), "names no dataset"),
    ],
)
def test_a_wrong_declaration_is_refused_when_it_is_made(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        make()


WRONG_TYPES: list[tuple[str, object, str]] = [
    ("split", ["train", "test"], "{'train': 0.98, 'test': 0.02}"),
    ("split", "train", "a share by name"),
    ("split", {"train": "1"}, "a share by name"),
    ("split", {"train": True}, "a share by name"),
    ("split", {1: 1.0}, "a share by name"),
    ("split", None, "a share by name"),
    ("checks", "rows", "a list, [checks.rows(100, 200)]"),
    ("checks", [checks.rows], "a list, [checks.rows(100, 200)]"),
    ("checks", checks.rows(1, 2), "a list, [checks.rows(100, 200)]"),
    ("checks", None, "a list, [checks.rows(100, 200)]"),
    ("deduplicate", 0.8, "Dedup(...), or None to keep every sample"),
    ("deduplicate", True, "Dedup(...), or None to keep every sample"),
    ("max_errors", "0.1", "a share of the rows or a number of them"),
    ("max_errors", True, "a share of the rows or a number of them"),
    ("tags", ["a"], "texts by name"),
    ("tags", {"a": 1}, "texts by name"),
    ("owners", "team", "a list of texts"),
    ("description", None, "a text"),
    ("private_on_purpose", "no", "True, or leave it out"),
    ("license", None, "an SPDX id"),
    ("source", "https://x", "Git(...) or another source"),
    ("clean", "clean", "a function of a row"),
    ("images", True, "Images(...), or leave it out"),
    ("loss", "answer", "Loss(...)"),
]


@pytest.mark.parametrize(("field", "value", "wanted"), WRONG_TYPES)
def test_a_field_of_another_type_is_told(field: str, value: object, wanted: str):
    with pytest.raises(DeclarationError) as caught:
        declared(public("text/x"), **{field: value})
    assert f"text/x: {field} is {value!r}, which is none" in str(caught.value)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"threshold": "0.8"},
        {"threshold": True},
        {"threshold": float("nan")},
        {"shingle_tokens": 2.5},
        {"rows_per_band": "5"},
        {"seed": None},
    ],
)
def test_a_policy_of_another_type_is_told(fields: dict[str, Any]):
    ((name, value),) = fields.items()
    with pytest.raises(DeclarationError, match=f"Dedup: {name} is {value!r}; write a"):
        Dedup(**fields)


def test_public_key_with_private_source_is_refused():
    source = LocalFiles(folder="x", rows="*", classification="private")
    with pytest.raises(ClassificationError, match="must be private"):
        declared(public("text/x"), source=source)


def test_what_a_partner_delivers_is_private_always():
    with pytest.raises(ClassificationError, match="must be private"):
        declared(public("text/x"), source=PartnerDrop(folder="x", rows="*"))
    declared(private("text/x"), source=PartnerDrop(folder="x", rows="*"))


def test_private_key_with_public_source_must_be_meant():
    with pytest.raises(ClassificationError, match="private_on_purpose=True if it is meant"):
        declared(private("text/x"))
    declared(private("text/x"), private_on_purpose=True)
    with pytest.raises(ClassificationError, match="Leave it out"):
        declared(public("text/x"), private_on_purpose=True)


def test_a_declaration_knows_its_file():
    assert declared(public("a")).declared_in == Path(__file__)
    assert dataclasses.replace(declared(public("a")), license="MIT").declared_in == Path(__file__)


def test_progress_is_reported(runner, letters):
    runner.until(letters, "clean")
    assert any("rows read" in line and "/s" in line for line in runner.said)


def _rejected(path: Path) -> list[dict[str, Any]]:
    return table.read(path / layout.REJECTED).to_pylist()
