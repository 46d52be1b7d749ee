"""Tracking: one MLflow run for each run of ours, through Megatron-Bridge's own MLflow logger.

SQLite and the artifacts lie per classification in this machine's state directory, outside the
namespace: SQLite on a network file system corrupts. The id is stored in the run's directory, so
that a second start of a run continues its MLflow run. A start on another machine, or in another pod
whose state is its own, finds no such run there and begins one more, with an id file of its own.
Bridge logs into the run that is active.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from factory.namespace import RunDirectory
from factory.spec import Launch

if TYPE_CHECKING:
    from mlflow import MlflowClient

RUN_ID_FILE = "mlflow.id"

MOST_METRICS = 1_000
"""MLflow takes no more at once."""


def tracking_uri(state: Path, launch: Launch) -> str:
    """Where MLflow keeps runs of that classification."""
    return f"sqlite:///{_store(state, launch) / 'mlflow.db'}"


def logger_settings(state: Path, launch: Launch) -> dict[str, Any]:
    """Fields of Bridge's `LoggerConfig` that point its MLflow logger there."""
    return {
        "mlflow_experiment": launch.spec.recipe,
        "mlflow_run_name": launch.run_id,
        "mlflow_tracking_uri": tracking_uri(state, launch),
        "mlflow_tags": {
            "run_id": launch.run_id,
            "mix": launch.spec.mix,
            "mix_lock": launch.mix_lock,
        },
        "mlflow_log_artifacts": False,  # it would copy every checkpoint
    }


@contextmanager
def active(state: Path, launch: Launch, run: RunDirectory) -> Generator[str]:
    """Within: the run's MLflow run is the active one. Only the last rank logs, so only it calls."""
    import mlflow

    mlflow.set_tracking_uri(tracking_uri(state, launch))
    run_id = _known_here(mlflow.MlflowClient(), run) or _begun(state, launch, run)
    mlflow.start_run(run_id=run_id)
    try:
        log_params = partial(_log_new_params, mlflow.log_params)
        with patch.object(mlflow, "log_params", log_params):
            yield run_id
    except BaseException:
        mlflow.end_run("FAILED")
        raise
    mlflow.end_run("FINISHED")


def log(
    state: Path, launch: Launch, run: RunDirectory, metrics: Mapping[str, float], step: int
) -> None:
    """Log numbers of a step in the run's MLflow run, in one transaction; from any thread."""
    import mlflow
    from mlflow.entities import Metric

    client = mlflow.MlflowClient(tracking_uri(state, launch))
    now = int(time.time() * 1_000)
    rows = [Metric(name, value, now, step) for name, value in metrics.items()]
    run_id = _known_here(client, run)
    if run_id is None:
        raise RuntimeError(f"{run} has no MLflow run here, and is to log into it; a defect.")
    for some in batched(rows, MOST_METRICS):
        client.log_batch(run_id, metrics=some)


def _log_new_params(log_params: Callable[[dict[str, Any]], Any], params: dict[str, Any]) -> None:
    """MLflow refuses to change a parameter; a second start differs in where it loads from."""
    import mlflow

    current = mlflow.active_run()
    known = mlflow.get_run(current.info.run_id).data.params if current else {}
    log_params({key: value for key, value in params.items() if key not in known})


def _known_here(client: "MlflowClient", run: RunDirectory) -> str | None:
    """The MLflow run of ours that this machine's store has; the newest, if there are several."""
    from mlflow.exceptions import MlflowException

    files = sorted(run.path.glob("mlflow*.id"), key=lambda file: file.stat().st_mtime)
    for file in reversed(files):
        stored = file.read_text(encoding="utf-8").strip()
        with suppress(MlflowException):
            return client.get_run(stored).info.run_id
    return None


def _begun(state: Path, launch: Launch, run: RunDirectory) -> str:
    import mlflow

    client = mlflow.MlflowClient()
    experiment = _experiment(client, launch.spec.recipe, _store(state, launch) / "artifacts")
    created = client.create_run(experiment, run_name=launch.run_id)
    first = not (run.path / RUN_ID_FILE).exists()
    name = RUN_ID_FILE if first else f"mlflow.{launch.attempt}.id"
    run.create(name, created.info.run_id.encode())
    return created.info.run_id


def _experiment(client: "MlflowClient", name: str, artifacts: Path) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return client.create_experiment(name, artifact_location=artifacts.as_uri())
        except MlflowException:  # another run has just made it
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return found.experiment_id


def _store(state: Path, launch: Launch) -> Path:
    store = state / "mlflow" / launch.classification
    store.mkdir(parents=True, exist_ok=True)
    return store
