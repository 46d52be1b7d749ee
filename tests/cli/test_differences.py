"""`factory diff` on the versions of a small asset and of a private one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.data import Sample, table
from factory.keys import Key, private, public
from factory.namespace import CheckRecord, Namespace, Version
from tests.cli.conftest import KEY, PROVENANCE, Factory, publish

NOTES = public("text/letters/clean")
SECRET = private("text/letters/clean")


def samples(namespace: Namespace, texts: dict[str, str], key: Key = NOTES, **given) -> Version:
    arguments = {
        "inputs": [],
        "input_id": str(texts) + str(given),
        "provenance": PROVENANCE,
        "source": key.classification,
        "parameters": {},
        "code": "c0de",
        "checks": [],
        "licenses": ["CC-BY-4.0"],
    }
    with namespace.write(key, **{**arguments, **given}) as staging:
        rows = [Sample.document(id=k, title="t", sections=[("", v)]) for k, v in texts.items()]
        table.write_samples(staging.path / "samples", rows)
        staging.describe(content_id=str(texts), rows=len(rows))
    if given.get("limit") is None:
        namespace.promote(staging.version)
    return staging.version


def test_the_current_version_with_the_one_before(factory: Factory, namespace: Namespace) -> None:
    before = samples(namespace, {"a": "one", "b": "two [red]x[/]"}, code="old")
    samples(namespace, {"c": "three"}, limit=1)
    after = samples(namespace, {"a": "one", "b": "four [red]x[/]", "c": "three"})
    found = factory("diff", str(NOTES))
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert lines[0] == "clean code changed, rows: 1 added, 1 changed"
    assert f"{NOTES}  {before.id} -> {after.id}" in lines
    assert "code: old -> c0de" in found.out
    assert "- two [red]x[/]" in found.out
    assert "+ four [red]x[/]" in found.out

    (facts,) = factory("diff", str(NOTES), "--json").facts
    assert facts["counts"] == {
        "of": "rows", "before": 2, "after": 3, "added": 1, "removed": 0, "changed": 1,
        "moved": {}, "reordered": False,
    }  # fmt: skip
    assert facts["verdict"] == lines[0]


def test_versions_by_their_first_digits(factory: Factory, namespace: Namespace) -> None:
    one = samples(namespace, {"a": "one"})
    two = samples(namespace, {"a": "two"})
    (facts,) = factory("diff", str(NOTES), two.id[:9], one.id[:9], "--json").facts
    assert (facts["before"], facts["after"]) == (two.id, one.id)
    (facts,) = factory("diff", str(NOTES), one.id[:9], "--examples", "0", "--json").facts
    assert facts["after"] == two.id
    assert facts["examples"]["changed"] == []


def test_a_dataset_compares_every_step_that_has_two(
    factory: Factory, namespace: Namespace, newer: Version
) -> None:
    found = factory("diff", "public/text/notes", "--json")
    assert [one["key"] for one in found.facts] == [str(KEY)]
    assert found.facts[0]["counts"]["of"] == "files"


def test_a_row_is_an_example_once(factory: Factory, namespace: Namespace) -> None:
    split = public("text/letters/split")
    for key in (split, NOTES):
        samples(namespace, {"a": "one"}, key=key)
        samples(namespace, {"a": "two", "b": "three"}, key=key)
    samples(namespace, {"a": "two", "b": "three", "c": "later"}, key=split)
    found = factory("diff", "public/text/letters")
    assert found.out.index(f"{NOTES}  ") < found.out.index(f"{split}  ")
    assert (found.out.count("added b"), found.out.count("added c")) == (1, 1)
    both = factory("diff", "public/text/letters", "--json").facts
    assert [one["key"] for one in both] == [str(NOTES), str(split)]

    samples(namespace, {"a": "four", "b": "three"}, key=NOTES)
    samples(namespace, {"a": "four", "b": "three"}, key=split)
    found = factory("diff", "public/text/letters")
    assert found.out.count("changed a") == 1
    assert "removed c" in found.out
    assert "examples shown above: 1" in found.out


def test_nothing_to_compare_with(factory: Factory, older: Version) -> None:
    alone = factory("diff", str(KEY))
    assert alone.code == 1
    assert f"No version of {KEY} is older than {older.id}" in alone.err
    itself = factory("diff", str(KEY), older.id, older.id)
    assert "compared with itself" in itself.err
    assert factory("diff", "public/text/nothing").code == 1
    steps = factory("diff", "public/text/notes", older.id)
    assert f"its steps have: {KEY}" in steps.err


def test_a_damaged_version_is_passed_over(factory: Factory, namespace: Namespace) -> None:
    one = samples(namespace, {"a": "one"})
    damaged = samples(namespace, {"a": "two"})
    samples(namespace, {"a": "three"})
    (damaged.path / "_manifest.json").write_text("{")
    (facts,) = factory("diff", str(NOTES), "--json").facts
    assert facts["before"] == one.id
    assert "_manifest.json cannot be read" in factory("diff", str(NOTES), damaged.id).err


def test_private_rows_are_printed_and_written_nowhere(
    factory: Factory, namespace: Namespace, tmp_path: Path
) -> None:
    samples(namespace, {"a": "the word canary7 said"}, key=SECRET)
    samples(namespace, {"a": "the word canary8 said"}, key=SECRET)
    found = factory("diff", str(SECRET))
    assert "canary7" in found.out
    outside = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and not path.is_relative_to(namespace.root / "private")
    ]
    assert not [path for path in outside if b"canary" in path.read_bytes()]


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another account needs root")
def test_an_account_that_may_not_read_it_is_told_so(namespace: Namespace, root: Path) -> None:
    samples(namespace, {"a": "canary7"}, key=SECRET)
    samples(namespace, {"a": "canary8"}, key=SECRET)
    for above in (root, *root.parents):
        if "pytest" in str(above):
            above.chmod(0o755)
    table_file = next((root / "private").rglob("*.parquet"))
    table_file.chmod(0o600)
    code = (
        "import os, sys\n"
        "import pyarrow.parquet, encodings.idna, factory.data.table\n"
        "import factory.data.differences.samples, factory.data.differences.files\n"
        "import factory.data.differences.causes\n"
        "from factory.cli.app import run\n"
        "os.setuid(65534)\n"
        f"sys.exit(run(['diff', '{SECRET}']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FACTORY_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "The namespace refuses comparing versions of private/text/letters/clean" in done.stderr
    assert "does this account lack access" in done.stderr
    assert "canary" not in done.stdout + done.stderr


# Weaknesses of the other commands on versions


def test_a_damaged_manifest_does_not_hide_the_others(
    factory: Factory, older: Version, newer: Version
) -> None:
    (newer.path / "_manifest.json").write_text('{"key": "secret"')
    found = factory("versions", "public/text/notes", "--json")
    assert found.code == 0
    assert {row["version"]: row["checks"] for row in found.facts} == {
        older.id: "1/1 passed",
        newer.id: "manifest damaged",
    }
    assert f"{newer}" in found.err
    assert "secret" not in found.err
    assert factory("versions", "public/text/notes").code == 0


def test_damaged_results_of_checks_are_said(factory: Factory, older: Version) -> None:
    (older.path / "_checks.json").write_text("{")
    (row,) = factory("versions", str(KEY), "--json").facts
    assert row["checks"] == "unreadable: run them again"


def test_rollback_of_a_dataset_names_its_steps(
    factory: Factory, older: Version, namespace: Namespace
) -> None:
    found = factory("rollback", "public/text/notes", older.id)
    assert found.code == 1
    assert f"its steps have: {KEY}. Name the step that is meant." in found.err


def test_results_without_a_form_are_read(namespace: Namespace, older: Version) -> None:
    """They were recorded before results had one."""
    record = CheckRecord.model_validate_json(
        '{"passed": true, "blocking": true, "summary": "", "checked_at": ""}'
    )
    assert record.form == ""
    publish(namespace, "more")
