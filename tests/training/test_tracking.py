"""MLflow runs of attempts that share a machine's state, and of one that has none of it."""

from pathlib import Path

import pytest

from factory.namespace import Namespace, RunDirectory
from factory.spec import CodeIdentity, Launch, RunSpec
from factory.training import tracking

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),  # of MLflow's own
]


def launch(attempt: int) -> Launch:
    return Launch(
        run_id="run-1",
        attempt=attempt,
        classification="public",
        spec=RunSpec(recipe="debug.pretrain", mix="smoke"),
        profile="cpu",
        datasets={},
        image=None,
        code=CodeIdentity(commit=None, tree="t", lock="l"),
    )


def logged(state: Path, attempt: int, run: RunDirectory) -> str:
    """The MLflow run into which that attempt logs a number of its own."""
    with tracking.active(state, launch(attempt), run) as run_id:
        tracking.log(state, launch(attempt), run, {f"of attempt {attempt}": 1.0}, step=attempt)
    return run_id


def metrics(state: Path, run_id: str) -> set[str]:
    import mlflow

    client = mlflow.MlflowClient(tracking.tracking_uri(state, launch(1)))
    return set(client.get_run(run_id).data.metrics)


def test_an_attempt_goes_on_in_the_run_of_the_one_before_where_there_is_that_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "root").mkdir()
    run = Namespace(tmp_path / "root").open_run("public", "run-1")
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    first = logged(here, 1, run)
    assert logged(here, 2, run) == first

    other = logged(elsewhere, 3, run)

    assert other != first
    assert (run.path / "mlflow.3.id").read_text() == other
    assert (run.path / "mlflow.id").read_text() == first, "what a run wrote is not replaced"
    assert logged(elsewhere, 4, run) == other
    assert logged(here, 5, run) == first, "back where the first one is"
    assert metrics(here, first) == {"of attempt 1", "of attempt 2", "of attempt 5"}
    assert metrics(elsewhere, other) == {"of attempt 3", "of attempt 4"}
