"""Both engines make the same versions, whatever happens to their workers meanwhile."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from factory.data import Dataset, PartnerDrop, engines, shards
from factory.data.steps import StepResult, run_step, steps
from factory.errors import BadFile, StepError
from factory.keys import private
from factory.namespace import Version

STEPS = ("clean", "deduplicated", "split")
WORDS = "a text of more than five words, number"


@pytest.fixture
def many(letters: Dataset, deliver, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Letters in several files, each of which is a shard; some are duplicates, some are empty."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 1)
    for file in range(5):
        rows = [
            {"id": f"{file}-{n}", "text": f"{WORDS} {n % 30}" if n % 10 else ""} for n in range(40)
        ]
        deliver(rows, f"part-{file}.jsonl")
    return letters


def made(runner, dataset: Dataset, engine: str, **changes: Any) -> list[Version]:
    """The versions of the steps over shards, in a namespace of their own."""
    versions: list[Version] = []
    for step in steps(dataset):
        if step.name == "raw":
            runner.checked(step)
        elif step.name in STEPS:
            versions.append(run(runner, step, engine, **changes).version)
            from factory.data.free_checks import run_checks

            run_checks(step, versions[-1], runner.namespace)
            runner.namespace.promote(versions[-1])
    return versions


def run(runner, step, engine: str, **changes: Any) -> StepResult:
    from factory.namespace import Provenance

    found = {key: runner.namespace.current(key) for key in step.inputs}
    return run_step(
        step,
        runner.namespace,
        found,
        settings=runner.settings,
        provenance=Provenance(run_id="run", identity="test"),
        engine=engine,
        progress=runner.said.append,
        **changes,
    )


def stated(version: Version) -> tuple[Any, ...]:
    manifest = version.manifest
    sizes = {name: entry.sha256 for name, entry in manifest.files.items()}
    return version.id, manifest.facts, manifest.rows, manifest.licenses, sizes


@pytest.mark.slow
def test_ray_makes_what_this_process_makes(runner, many, monkeypatch, tmp_path):
    here = [stated(version) for version in made(runner, many, "local")]
    assert [len(files) for *_, files in here] == [12, 7, 18]
    for version in runner.namespace.versions(many.key / "clean"):
        assert version.manifest.facts["rejected"] == {"no text": 21}
    import shutil

    for name in STEPS:
        shutil.rmtree(runner.settings.root / f"{many.key.path}/{name}.versions")
        (runner.settings.root / f"{many.key.path}/{name}").unlink()
    there = [stated(version) for version in made(runner, many, "ray")]
    assert there == here
