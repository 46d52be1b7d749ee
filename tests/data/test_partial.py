"""Versions made from a partial mirror: marked to the end, never mistaken for the whole."""

import hashlib
import json
from pathlib import Path

import pytest

from factory.control.freshness import stale
from factory.control.metadata import plain_metadata
from factory.data import Check, Dataset, Git, checks
from factory.data.checks import CheckResult
from factory.data.steps import steps
from factory.errors import NamespaceError, SettingsError
from factory.keys import public
from factory.namespace import Namespace, Provenance, Version
from factory.settings import Settings
from tests.data.conftest import Runner, clean

PIN, URL = "a" * 40, "https://example.org/letters"
KEPT = 9


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """As for every test, and with one mirror."""
    file = tmp_path / "mirrors.toml"
    file.write_text(f'[mirrors]\n"{URL}" = "mirror"\n')
    return settings.model_copy(update={"mirrors": file})


class Mirror:
    """A mirror of two files of letters; `hold` says which of them are there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name, first in (("one", 0), ("two", 10)):
            rows = [{"id": f"{n}", "text": f"text {n}" if n % 10 else ""} for n in range(10)]
            lines = [json.dumps(row | {"id": f"letter-{first + i}"}) for i, row in enumerate(rows)]
            (folder / f"{name}.jsonl").write_text(
                "\n".join(lines).replace("text ", f"text {name} ")
            )

    def hold(self, *names: str, partial: bool) -> None:
        said = [f'pin = "{PIN}"', f"partial = {str(partial).lower()}", "[files]"]
        for name in names:
            sha256 = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
            said.append(f'"{name}" = {{ path = "{name}", sha256 = "{sha256}" }}')
        (self.folder / "mirror.toml").write_text("\n".join(said))


@pytest.fixture
def mirror(settings: Settings, tmp_path: Path) -> Mirror:
    made = Mirror(tmp_path / "mirror")
    made.hold("one.jsonl", partial=True)
    return made


def letters(rows: str = "*.jsonl", low: int = 15, high: int = 20, **changes: object) -> Dataset:
    fields = {
        "key": public("text/letters"),
        "license": "CC-BY-4.0",
        "source": Git(url=URL, revision=PIN, rows=rows),
        "clean": clean,
        "split": {"train": 0.8, "validation": 0.2},
        "checks": [checks.rows(low, high), checks.rejected("no text", at_most=0.05)],
        **changes,
    }
    return Dataset(**fields)  # type: ignore[arg-type]


def test_every_version_down_to_the_split_is_partial(runner: Runner, mirror: Mirror) -> None:
    dataset = letters()
    runner.until(dataset, "split")
    for step in steps(dataset)[:4]:
        version = runner.namespace.current(step.key)
        assert version is not None, "a partial version may be current"
        assert version.manifest.partial
        assert "PARTIAL" in plain_metadata(version)


def test_bounds_of_the_whole_source_are_not_judged(runner: Runner, mirror: Mirror) -> None:
    _, records = runner.until(letters(), "clean")
    assert records["rows"].passed
    assert records["rows"].summary == f"{KEPT} rows; not judged: PARTIAL mirror"
    assert records["rejected_no_text"].summary == "10.0%; not judged: PARTIAL mirror"


def test_part_of_a_source_has_no_more_rows_than_all_of_it(runner: Runner, mirror: Mirror) -> None:
    _, records = runner.until(letters(low=1, high=8), "clean")
    assert not records["rows"].passed


def test_checks_of_what_is_there_are_judged(runner: Runner, mirror: Mirror) -> None:
    wrong = Check("mine", lambda _: CheckResult(False, "wrong"))
    _, records = runner.until(letters(checks=[wrong]), "clean")
    assert not records["mine"].passed


def test_bounds_are_judged_where_the_pattern_spells_out_what_is_there(
    runner: Runner, mirror: Mirror
) -> None:
    version, records = runner.until(letters("one.jsonl"), "clean")
    assert not version.manifest.partial
    assert not records["rows"].passed
    assert not records["rejected_no_text"].passed


def test_a_partial_raw_is_not_taken_for_the_whole(runner: Runner, mirror: Mirror) -> None:
    raw = steps(letters())[0]
    part = runner.step(raw).version
    assert runner.step(raw).reused
    mirror.hold("one.jsonl", "two.jsonl", partial=False)
    result = runner.step(raw)
    assert not result.reused
    assert result.version.id != part.id
    assert not result.version.manifest.partial
    assert len(result.version.manifest.files) > len(part.manifest.files)


def test_the_same_files_said_to_be_all_are_another_version(runner: Runner, mirror: Mirror) -> None:
    raw = steps(letters())[0]
    part = runner.step(raw).version
    mirror.hold("one.jsonl", partial=False)
    whole = runner.step(raw).version
    assert whole.manifest.content_id == part.manifest.content_id
    assert whole.id != part.id
    assert not whole.manifest.partial


def test_what_a_mirror_holds_decides_what_is_stale(runner: Runner, mirror: Mirror) -> None:
    dataset = letters()
    runner.until(dataset, "split")
    fresh = {step.key for step in steps(dataset)[:4]}
    assert not fresh & set(stale([dataset], runner.settings))
    mirror.hold("one.jsonl", "two.jsonl", partial=True)
    assert fresh <= set(stale([dataset], runner.settings))


def write(namespace: Namespace, name: str, inputs: list[Version], *, partial: bool) -> Version:
    key = public("text/notes") / name
    with namespace.write(
        key,
        inputs=inputs,
        input_id=name,
        provenance=Provenance(run_id="run", identity="test"),
        parameters={},
        code="",
        checks=[],
        licenses=[],
        source="public",
    ) as staging:
        (staging.path / "file").write_text(name)
        staging.describe(content_id=name, partial=partial)
    return staging.version


def test_one_partial_input_is_enough(runner: Runner) -> None:
    whole = write(runner.namespace, "whole", [], partial=False)
    part = write(runner.namespace, "part", [], partial=True)
    assert write(runner.namespace, "both", [whole, part], partial=False).manifest.partial
    assert not write(runner.namespace, "alone", [whole], partial=False).manifest.partial


def test_partial_is_part_of_what_a_version_states(runner: Runner) -> None:
    write(runner.namespace, "notes", [], partial=True)
    with pytest.raises(NamespaceError, match="is there already with other partial"):
        write(runner.namespace, "notes", [], partial=False)


def test_partial_runs_are_for_tests(runner: Runner) -> None:
    read = Settings.from_environment
    assert not read({}).allow_partial
    assert not read({"FACTORY_ALLOW_PARTIAL": "0"}).allow_partial
    allowed = read({"FACTORY_ALLOW_PARTIAL": "1"})
    assert allowed.allow_partial
    assert read(allowed.environment()) == allowed
    with pytest.raises(SettingsError, match="FACTORY_ALLOW_PARTIAL is 'yes'"):
        read({"FACTORY_ALLOW_PARTIAL": "yes"})
    with pytest.raises(SettingsError, match="is set on prod"):
        read({"FACTORY_ALLOW_PARTIAL": "1", "FACTORY_DEPLOYMENT": "prod"})
