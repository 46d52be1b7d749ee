"""The declarations of this repository, run on real inputs."""

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from factory.data import checks, layout, table
from factory.discovery import datasets
from factory.errors import BadFile
from tests.deliveries import sign


@pytest.fixture
def medquad(shared_data: Path, tmp_path: Path):
    """The real declaration on a Git repository made of a part of the real files."""
    folder = tmp_path / "repository"
    for part in ("1_CancerGov_QA", "5_NIDDK_QA", "10_MPlus_ADAM_QA"):
        shutil.copytree(shared_data / "medquad" / part, folder / part)
    revision = commit(folder)
    declared = datasets()["public/text/medquad"]
    source = dataclasses.replace(declared.source, url=folder.as_uri(), revision=revision)
    return dataclasses.replace(
        declared,
        source=source,
        checks=[checks.rows(1_500, 2_000), checks.rejected("no answer", at_most=0.15)],
    )


def commit(folder: Path) -> str:
    def git(*arguments: str) -> str:
        name = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        command = ["git", "-C", str(folder), *name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)  # the shared files are read-only
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "-m", "files")
    return git("rev-parse", "HEAD")


def test_medquad_from_a_repository(runner, medquad):
    version, _ = runner.until(medquad, "split")
    cleaned = runner.namespace.current(medquad.key / "clean")
    facts = cleaned.manifest.facts
    assert facts["rejected"] == {"no answer": facts["rows_read"] - cleaned.manifest.rows}
    samples = list(table.samples(cleaned.path / layout.SAMPLES))
    first = next(one for one in samples if one.id == "1_CancerGov_QA/0000001_1.xml#1")
    assert first.content.question == "What is (are) Adult Acute Lymphoblastic Leukemia ?"
    assert first.content.answer.startswith("Key Points")
    assert first.license == "CC-BY-4.0"
    assert not any(one.content.answer != one.content.answer.strip() for one in samples)
    assert set(version.manifest.facts["rows"]) == {"train", "validation", "test"}


def test_medquad_loses_what_is_asked_and_answered_twice_only(runner, medquad):
    version, _ = runner.until(medquad, "deduplicated")
    cleaned = runner.namespace.current(medquad.key / "clean")
    said = {one.id: one.content for one in table.samples(cleaned.path / layout.SAMPLES)}
    gone = table.read(version.path / layout.REMOVED).to_pylist()
    assert version.manifest.facts["duplicates"] == {"exact": 48, "near": 0}
    for one in gone:
        assert said[one["id"]].question.lower() == said[one["kept"]].question.lower()
    answers = [said[one.id].answer for one in table.samples(version.path / layout.SAMPLES)]
    assert len(answers) - len(set(answers)) > 5, "the same answer to another question stays"


def test_medquad_with_a_corrupt_file(runner, medquad, tmp_path):
    folder = tmp_path / "repository"
    file = folder / "5_NIDDK_QA" / "0000001.xml"
    file.write_text(file.read_text()[:-20])
    source = dataclasses.replace(medquad.source, revision=commit(folder))
    with pytest.raises(BadFile, match=r"5_NIDDK_QA/0000001\.xml, line \d+, column \d+: not XML"):
        runner.until(dataclasses.replace(medquad, source=source), "clean")
    assert runner.namespace.current(medquad.key / "clean") is None


def test_discharge_letters_from_a_drop_folder(runner, settings):
    folder = settings.drops / "discharge_letters"
    folder.mkdir()
    letter = {"language": "en", "findings": "", "medication": "", "recommendation": "Rest."}
    rows = [
        letter | {"letter_id": f"l{n}", "patient_pseudonym": f"p{n // 3}", "history": f"Well {n}."}
        for n in range(90)
    ]
    rows[0]["language"] = "de"
    rows[1] |= {"history": " ", "recommendation": ""}
    (folder / "letters.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sign(folder)
    dataset = datasets()["private/text/discharge_letters"]
    version, records = runner.until(dataset, "split")
    assert records["disjoint"].passed
    cleaned = runner.namespace.current(dataset.key / "clean")
    assert cleaned.manifest.classification == "private"
    assert cleaned.manifest.facts["rejected"] == {"not English": 1, "empty letter": 1}
    assert sum(version.manifest.facts["groups"].values()) == 30


@pytest.mark.slow
def test_plos_from_the_package_index(runner):
    """Needs a way to a package index, or uv's cache of it."""
    version, _ = runner.until(datasets()["public/text/plos"], "energon/train")
    cleaned = runner.namespace.current(datasets()["public/text/plos"].key / "clean")
    assert cleaned.manifest.rows == 121
    assert cleaned.manifest.facts["rejected"] == {"licence unclear": 1}
    assert version.manifest.rows > 90
