"""Came of: what a run's page shows of it, read from the files that the run wrote.

Its pods may write anything there. What cannot be read is said on the page and fails nothing: how
the run ended is judged elsewhere (`verdict`).
"""

import re
from collections.abc import Callable
from typing import Any

import dagster as dg

from factory.control import figures
from factory.control.markdown import escaped
from factory.control.mix_metadata import mix_metadata
from factory.control.seen import seen
from factory.diagnose.steps import step_lines
from factory.errors import FactoryError
from factory.namespace import RunDirectory
from factory.namespace.attempts import last_attempt
from factory.namespace.checkpoints import complete_checkpoints
from factory.namespace.run_files import contents

MLFLOW = "mlflow.id"
NOT_SHOWN = "not shown"

_MLFLOW_ID = re.compile(rb"[A-Za-z0-9_-]{1,64}")
_LARGEST_ID_BYTES = 1024


def shown(run: RunDirectory) -> dict[str, Any]:
    """Metadata of a run, with a line for each part of it that cannot be read."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    for part in _PARTS:
        try:
            found |= part(run)
        except (FactoryError, OSError) as error:
            problems.append(_problem(run, error))
    if problems:
        found[NOT_SHOWN] = dg.MetadataValue.md("\n".join(f"- {one}" for one in problems))
    return found


def _problem(run: RunDirectory, error: Exception) -> str:
    """Of a private run no words: they can be those of its files, and the page has other readers."""
    if run.classification == "private":
        return f"{type(error).__name__}: `factory runs show {run.run_id}` says more."
    return escaped(str(error))


def _mlflow(run: RunDirectory) -> dict[str, Any]:
    try:
        written = contents(run.path, MLFLOW, _LARGEST_ID_BYTES).strip()
    except FileNotFoundError:
        return {}
    return {"MLflow run": written.decode()} if _MLFLOW_ID.fullmatch(written) else {}


def _attempts(run: RunDirectory) -> dict[str, Any]:
    attempts = last_attempt(run)
    return {"attempts": attempts} if attempts > 1 else {}


def _checkpoint(run: RunDirectory) -> dict[str, Any]:
    checkpoints = complete_checkpoints(run)
    return {"checkpoint": dg.MetadataValue.path(str(checkpoints[-1].path))} if checkpoints else {}


def _loss(run: RunDirectory) -> dict[str, Any]:
    lines = step_lines(run.path)
    if not lines:
        return {}
    curve = figures.loss_curve([line.step for line in lines], [line.loss for line in lines])
    return {
        "loss": dg.MetadataValue.md(curve),
        "loss at start": lines[0].loss,
        "loss at end": lines[-1].loss,
        "steps": lines[-1].step,
        "tokens": lines[-1].tokens,
    }


def _mixture(run: RunDirectory) -> dict[str, Any]:
    return seen(run.path)


def _mix(run: RunDirectory) -> dict[str, Any]:
    return mix_metadata(run.path)


_PARTS: tuple[Callable[[RunDirectory], dict[str, Any]], ...] = (
    _mlflow,
    _attempts,
    _checkpoint,
    _loss,
    _mixture,
    _mix,
)
