"""The command line in this process, on a namespace of its own with two versions of one asset."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from factory.cli.app import run
from factory.keys import public
from factory.namespace import CheckRecord, Namespace, Provenance, Version

KEY = public("text/notes/clean")
PROVENANCE = Provenance(run_id="run-1", identity="tester", image=None)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        return json.loads(self.out)


type Factory = Callable[..., Outcome]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "namespace"
    path.mkdir()
    monkeypatch.setenv("FACTORY_ROOT", str(path))
    monkeypatch.setenv("FACTORY_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    return path


@pytest.fixture
def factory(root: Path, capfd: pytest.CaptureFixture[str]) -> Factory:
    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = run(arguments)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def namespace(root: Path) -> Namespace:
    return Namespace(root)


@pytest.fixture
def older(namespace: Namespace) -> Version:
    return publish(namespace, "first")


@pytest.fixture
def newer(namespace: Namespace, older: Version) -> Version:
    return publish(namespace, "second")


def publish(namespace: Namespace, text: str, *, passed: bool = True) -> Version:
    with namespace.write(
        KEY,
        inputs=[],
        input_id=text,
        provenance=PROVENANCE,
        source="public",
        parameters={},
        code="c0de",
        checks=["has_rows"],
        licenses=["CC-BY-4.0"],
    ) as staging:
        (staging.path / "rows.txt").write_text(text)
        staging.describe(content_id=text, rows=1, columns={}, facts={})
    version = staging.version
    record = CheckRecord(
        passed=passed, blocking=True, summary="1 row", facts={}, checked_at="2026-01-01T00:00:00Z"
    )
    namespace.record_checks(version, {"has_rows": record})
    if passed:
        namespace.promote(version)
    return version
