"""Launches from the command line: a process of their own, from the request to its result."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dagster import DagsterRunStatus

from factory.control import launch
from factory.control.instance import ensure
from factory.errors import SettingsError, SpecError
from factory.keys import public
from factory.namespace import Namespace
from factory.settings import Settings
from tests.conftest import CHECKOUT
from tests.control.conftest import AFTER_CLEAN, FAST, deliver

pytestmark = pytest.mark.slow

DECLARATION = '''"""Letters."""

import time

from definitions.datasets.public.text._words import tidy
from factory.data import Dataset, LocalFiles, Rejected, Row, Sample
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Question and answer of a line."""
    time.sleep({pause})
    if not row.text("answer"):
        return Rejected("no answer")
    question = tidy(row.text("question"))
    return Sample.question(id=row.id, question=question, answer=row.text("answer"))


letters = Dataset(
    key=public("text/letters"),
    license="CC-BY-4.0",
    source=LocalFiles(folder="letters", rows="*.jsonl", classification="public"),
    clean=clean,
    split={{"train": 0.8, "validation": 0.2}},
)
'''
HELPER = '''"""Words: what declarations share."""


def tidy(text: str) -> str:
    """Text without what surrounds it."""
    return text.strip(){more}
'''
STEPS = [f"public/text/letters/{name}" for name in FAST]


@pytest.fixture
def declared(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `definitions/`, used by child processes, that declares `letters` with a helper."""
    shutil.copytree(
        CHECKOUT / "definitions",
        tmp_path / "definitions",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = tmp_path / "definitions/datasets/public/text"
    (folder / "letters.py").write_text(DECLARATION.format(pause=0))
    (folder / "_words.py").write_text(HELPER.format(more=""))
    deliver(settings)
    return folder


def test_materialize_then_reuse_then_edit_a_helper(settings: Settings, declared: Path) -> None:
    said: list[str] = []
    first = launch.materialize(STEPS, settings=settings, progress=said.append)
    assert first.success, first.failures
    clean = public("text/letters/clean")
    namespace = Namespace(settings.root)
    made = namespace.current(clean)
    assert made is not None
    assert f"{made} is current" in said
    assert made.manifest.run_id == first.run_id

    assert launch.materialize(STEPS, settings=settings).success
    assert namespace.current(clean) == made

    (declared / "_words.py").write_text(HELPER.format(more=".upper()"))
    assert launch.materialize(STEPS, settings=settings).success
    changed = namespace.current(clean)
    assert changed is not None
    assert changed.id != made.id
    assert changed.manifest.inputs == made.manifest.inputs
    after = namespace.current(public("text/letters") / AFTER_CLEAN)
    assert after is not None
    assert after.manifest.inputs == {str(clean): changed.id}


def test_runs_are_recorded_as_the_ui_would(settings: Settings, declared: Path) -> None:
    result = launch.materialize(STEPS[:1], settings=settings)
    with ensure(settings) as instance:
        run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.status == DagsterRunStatus.SUCCESS
    assert run.remote_job_origin is not None
    assert run.remote_job_origin.location_name == "factory"
    assert {key.to_user_string() for key in run.asset_selection or ()} == set(STEPS[:1])


def test_failure_names_the_step_and_what_happened(settings: Settings, declared: Path) -> None:
    result = launch.materialize(STEPS[1:2], settings=settings)
    assert not result.success
    (failure,) = result.failures
    assert failure.startswith(
        "public/text/letters/clean: Nothing is current at public/text/letters/raw"
    )


def test_limit(settings: Settings, declared: Path) -> None:
    assert launch.materialize(STEPS, 20, settings=settings).success
    namespace = Namespace(settings.root)
    assert namespace.current(public("text/letters/clean")) is None
    assert namespace.versions(public("text/letters/split"))[0].manifest.limit == 20


def test_wrong_requests_start_nothing(settings: Settings) -> None:
    with pytest.raises(SpecError, match="Did you mean smoke"):
        launch.launch("smokee", {}, settings=settings)
    with pytest.raises(SpecError, match="no field 'worker'"):
        launch.launch("smoke", {"worker": "2"}, settings=settings)
    with pytest.raises(SpecError, match="public/text/plos"):
        launch.materialize(["public/text/plso"], settings=settings)
    with pytest.raises(SpecError, match="limit applies to `clean`"):
        launch.materialize(["public/text/plos/raw"], 5, settings=settings)
    with ensure(settings) as instance:
        assert list(instance.get_runs()) == []


def test_gate_refuses_what_is_not_materialized(settings: Settings) -> None:
    result = launch.launch("smoke", {}, settings=settings)
    assert not result.success
    (failure,) = result.failures
    assert failure.startswith("gate: The mix 'smoke' cannot be trained on:")
    assert "public/text/plos/energon/train is not materialized" in failure


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_run_ends_with_the_one_who_asked(
    settings: Settings, declared: Path, how: signal.Signals
) -> None:
    """Interrupted or killed: the run does not go on, and is recorded as not having succeeded."""
    (declared / "letters.py").write_text(DECLARATION.format(pause=30))
    code = f"from factory.control import launch; launch.materialize({STEPS[:2]}, progress=print)"
    asking = subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        env={**os.environ, **settings.environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert asking.stdout is not None
    for line in asking.stdout:
        if "is current" in line:
            break
    time.sleep(1)
    asking.send_signal(how)
    asking.wait(timeout=60)
    asking.stdout.close()
    with ensure(settings) as instance:
        (run,) = instance.get_runs()
        for _ in range(600):
            if run.is_finished:
                break
            time.sleep(0.1)
            (run,) = instance.get_runs()
    assert run.status in (DagsterRunStatus.CANCELED, DagsterRunStatus.FAILURE)


def test_home_that_cannot_be_written(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wrong = settings.model_copy(update={"dagster_home": tmp_path / "file" / "home"})
    with pytest.raises(SettingsError, match="cannot be written"):
        ensure(wrong)
