"""A namespace of its own for each test, ten delivered rows, and steps run for real."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from factory.data import Dataset, LocalFiles, Rejected, Row, Sample
from factory.data.engines import LOCAL
from factory.data.free_checks import run_checks
from factory.data.steps import Step, StepResult, run_step, steps
from factory.keys import private
from factory.namespace import CheckRecord, Namespace, Provenance, Version
from factory.settings import Settings

type Deliver = Callable[..., Path]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for name in ("root", "state", "drops"):
        (tmp_path / name).mkdir()
    return Settings.from_environment(
        {
            "FACTORY_ROOT": str(tmp_path / "root"),
            "FACTORY_STATE": str(tmp_path / "state"),
            "FACTORY_DROPS": str(tmp_path / "drops"),
        }
    )


@pytest.fixture
def deliver(settings: Settings) -> Deliver:
    """Write JSON lines into the partner's folder."""

    def write(rows: list[dict[str, Any]], name: str = "letters.jsonl") -> Path:
        folder = settings.drops / "letters"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def clean(row: Row) -> Sample | Rejected:
    text = row.text("text")
    if not text:
        return Rejected("no text")
    return Sample.document(id=row.text("id"), title="Letter", sections=[("", text)])


@pytest.fixture
def letters(deliver: Deliver) -> Dataset:
    """Ten rows, one of them without text."""
    deliver([{"id": f"letter-{n}", "text": f"text {n}" if n else ""} for n in range(10)])
    return Dataset(
        key=private("text/letters"),
        license="LicenseRef-test",
        source=LocalFiles(folder="letters", rows="*.jsonl", classification="private"),
        clean=clean,
        split={"train": 0.8, "validation": 0.1, "test": 0.1},
    )


class Runner(SimpleNamespace):
    """Runs the steps of a dataset as the control plane does: make, check, promote."""

    namespace: Namespace
    settings: Settings

    def step(
        self,
        step: Step,
        *,
        limit: int | None = None,
        inputs: dict[Any, Version] | None = None,
        engine: str = LOCAL,
    ) -> StepResult:
        found = {key: self.namespace.current(key) for key in step.inputs}
        given = inputs or {key: one for key, one in found.items() if one is not None}
        return run_step(
            step,
            self.namespace,
            given,
            settings=self.settings,
            provenance=Provenance(run_id="run", identity="test"),
            limit=limit,
            engine=engine,
            progress=self.said.append,
        )

    def checked(self, step: Step) -> tuple[Version, dict[str, CheckRecord]]:
        version = self.step(step).version
        records = run_checks(step, version, self.namespace)
        if not self.namespace.not_passed(version):
            self.namespace.promote(version)
        return version, records

    def until(self, dataset: Dataset, last: str) -> tuple[Version, dict[str, CheckRecord]]:
        """Run the steps up to that one, each of which must pass its checks but the last."""
        for step in steps(dataset):
            version, records = self.checked(step)
            if step.name == last:
                return version, records
            failed = {name: one.summary for name, one in records.items() if not one.passed}
            assert not failed, failed
        raise AssertionError(f"no step {last}")


@pytest.fixture
def runner(settings: Settings) -> Runner:
    return Runner(namespace=Namespace(settings.root), settings=settings, said=[])


type Find = Callable[[Path, bytes], list[Path]]


@pytest.fixture
def files_with() -> Find:
    """Every file below a directory that holds these bytes."""

    def find(directory: Path, marker: bytes) -> list[Path]:
        return [p for p in directory.rglob("*") if p.is_file() and marker in p.read_bytes()]

    return find
