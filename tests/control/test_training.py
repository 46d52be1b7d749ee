"""Training jobs: the launchpad's defaults and refusals, and what a run's page shows."""

import base64
from typing import Any

import dagster as dg
import pytest

from factory.control.came_of import NOT_SHOWN
from factory.control.resources import resources
from factory.control.training import outcome, training_job
from factory.diagnose.steps import step_lines
from factory.namespace import RunDirectory
from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import Marker, checkpoint_path, complete
from factory.reports import Reading, StepLine
from factory.spec import CodeIdentity, Launch, RunSpec
from tests.control.conftest import Bench
from tests.namespace.planted import PLANTED, ends_soon
from tests.observe.mixture.made import clinical_lines, lock_of

SPEC = RunSpec(recipe="debug.pretrain", mix="no_such_mix", overrides={"train.train_iters": "7"})


def run_directory(bench: Bench, launch: Launch) -> RunDirectory:
    return bench.namespace.open_run(launch.classification, launch.run_id)


@pytest.fixture
def launched() -> Launch:
    return Launch(
        run_id="run-1",
        attempt=1,
        classification="public",
        spec=SPEC,
        profile="cpu",
        datasets={"public/text/letters/energon/train": "0" * 20},
        image=None,
        code=CodeIdentity(commit=None, tree="", lock=""),
    )


def run_job(bench: Bench, run_config: dict[str, object]) -> dg.ExecuteInProcessResult:
    return training_job("job", SPEC).execute_in_process(
        instance=bench.instance,
        resources=dict(resources(bench.settings)),
        run_config=run_config,
        raise_on_error=False,
    )


def test_defaults_reach_the_gate(bench: Bench) -> None:
    result = run_job(bench, {})
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert failure.step_key == "gate"
    assert "No mix 'no_such_mix'" in str(failure.step_failure_data.error)


def test_launchpad_changes_one_field(bench: Bench) -> None:
    result = run_job(bench, {"mix": "other"})
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "No mix 'other'" in str(failure.step_failure_data.error)


def test_a_run_is_tagged_with_what_it_was_asked_for(bench: Bench) -> None:
    result = run_job(bench, {"mix": "other"})
    run = bench.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert (run.tags["mix"], run.tags["recipe"]) == ("other", "debug.pretrain")


@pytest.mark.parametrize(
    ("value", "text"), [(200, "200"), (1e-05, "1e-05"), (True, "true"), (None, "none"), ("x", "x")]
)
def test_overrides_are_given_as_they_are_written(bench: Bench, value: Any, text: str) -> None:
    """YAML reads `200` as a number; the recipe takes it all the same, and names it where not."""
    result = run_job(bench, {"overrides": {"train.train_itres": value}})
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "debug.pretrain has no field 'train.train_itres'" in str(failure.step_failure_data.error)
    assert RunSpec(recipe="r", mix="m", overrides={"a": value}).overrides == {"a": text}


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_an_override_is_one_value(bench: Bench, value: object) -> None:
    result = run_job(bench, {"overrides": {"train.train_iters": value}})
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "overrides.train.train_iters" in str(failure.step_failure_data.error)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"workerz": 1}, "workerz"),
        ({"workers": "many"}, "workers"),
    ],
)
def test_launchpad_refuses(bench: Bench, config: dict[str, object], message: str) -> None:
    with pytest.raises(dg.DagsterError) as refused:
        run_job(bench, config)
    assert message in str(refused.value)
    assert list(bench.instance.get_runs()) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"run_limit_hours": float("inf")}, "run_limit_hours"),
        ({"gpus_per_worker": 99}, "gpus_per_worker"),
    ],
)
def test_the_gate_names_what_is_out_of_range(
    bench: Bench, config: dict[str, object], message: str
) -> None:
    result = run_job(bench, config)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert failure.step_key == "gate"
    error = failure.step_failure_data.error
    assert "SpecError" in str(error)
    assert message in str(error)


def test_outcome_of_a_run_that_wrote_nothing(bench: Bench, launched: Launch) -> None:
    shown = outcome(launched, run_directory(bench, launched))
    assert set(shown) == {"run directory", "versions"}


def test_outcome(bench: Bench, launched: Launch) -> None:
    directory = run_directory(bench, launched)
    monitor = directory.directory("monitor")
    lines = [
        StepLine(
            step=step, of=3, loss=9.0 / step, grad_norm=1.0, learning_rate=1e-3,
            tokens=step * 100, seconds=0.1,
        )
        for step in (1, 2, 3)
    ]  # fmt: skip
    text = "".join(line.model_dump_json() + "\n" for line in lines)
    (monitor / "steps.jsonl").write_text(text + '{"step": 4, "of"')
    for step in (2, 3, 4):
        checkpoint_path(directory, step).mkdir(parents=True)
    for step in (2, 3):  # that of step 4 was never completed
        marker = Marker(step=step, attempt=1, identity={}, files={})
        complete(checkpoint_path(directory, step), marker)
    for number in (1, 2):
        Attempt(directory, number).claim()
    directory.create("mlflow.id", b"abc123\n")
    assert step_lines(directory.path) == lines
    shown = outcome(launched, directory)
    assert shown["loss at start"] == 9.0
    assert shown["loss at end"] == 3.0
    assert (shown["steps"], shown["tokens"]) == (3, 300)
    assert shown["MLflow run"] == "abc123"
    assert shown["attempts"] == 2
    assert shown["checkpoint"].value.endswith("iter_0000003")
    picture = shown["loss"].value.partition("base64,")[2].rstrip(")")
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert shown["versions"].records[0].data["asset"] == "public/text/letters/energon/train"


LETTER = "PATIENT JOHN DOE"
READ_FOR_THE_PAGE = (
    "mlflow.id",
    "attempts",
    "checkpoints",
    "checkpoints/iter_0000040/complete.json",
    "monitor",
    "monitor/steps.jsonl",
    "mixture/ledger.jsonl",
    "mix.lock",
    "mix.2.lock",
)


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("name", READ_FOR_THE_PAGE)
def test_what_a_pod_planted_is_named_and_never_shown(
    bench: Bench, launched: Launch, name: str, plant: str
) -> None:
    directory = run_directory(bench, launched)
    path = directory.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    secret = directory.root / "private"
    secret.mkdir(exist_ok=True)
    (secret / "letter.txt").write_text(LETTER)
    PLANTED[plant](path, secret / "letter.txt")
    with ends_soon():
        shown = outcome(launched, directory)
    assert set(shown) == {"run directory", "versions", NOT_SHOWN}
    assert shown[NOT_SHOWN].value.startswith("- ")
    assert name.rpartition("/")[2] in shown[NOT_SHOWN].value
    assert LETTER not in str(shown)


def test_what_is_read_is_shown_beside_what_cannot_be(bench: Bench, launched: Launch) -> None:
    directory = run_directory(bench, launched)
    directory.create("mlflow.id", b"abc123\n")
    directory.create("mix.lock", b"[" * 200_000)
    shown = outcome(launched, directory)
    assert shown["MLflow run"] == "abc123"
    assert "mix.lock is no lock of a mix" in shown[NOT_SHOWN].value


@pytest.mark.parametrize("written", [b"\xff\xfe", b"a b", b"<b>", b"x" * 65, b"", b"a\nb"])
def test_text_that_is_no_id_is_not_shown_for_one(
    bench: Bench, launched: Launch, written: bytes
) -> None:
    directory = run_directory(bench, launched)
    directory.create("mlflow.id", written)
    assert "MLflow run" not in outcome(launched, directory)


def test_of_a_private_run_the_page_says_only_that_something_cannot_be_read(
    bench: Bench, launched: Launch
) -> None:
    directory = bench.namespace.open_run("private", "run-2")
    line = '{"kind": "' + LETTER + '"}'
    directory.append("monitor/steps.jsonl", line)
    shown = outcome(launched, directory)[NOT_SHOWN].value
    assert shown == "- RunFailed: `factory runs show run-2` says more."


def test_the_page_shows_what_was_seen_of_the_mix(bench: Bench, launched: Launch) -> None:
    directory = run_directory(bench, launched)
    directory.create("mix.lock", lock_of().to_json())
    reading = Reading(
        begun=1, after=0, seed=1, ranks=2, workers=0, micro_batch_size=1, global_batch_size=2
    )
    directory.append("mixture/reading.jsonl", reading.model_dump_json())
    for line in clinical_lines():
        directory.append("mixture/ledger.jsonl", line.model_dump_json())
    shown = outcome(launched, directory)
    picture, _, table = shown["mixture"].value.partition("base64,")[2].partition(")")
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert len(picture) < 100_000, "it is stored in the event log"
    (tools,) = (row.split(" | ") for row in table.splitlines() if r"tool\_use" in row)
    assert tools[1:5] == ["12.0 ± 1.0", "12.0", "15.1", "5.0"]
    assert "drift" not in shown
    alarmed = clinical_lines()[-1].model_copy(update={"alarms": ("tool use has 3%",)})
    directory.append("mixture/ledger.jsonl", alarmed.model_dump_json())
    assert outcome(launched, directory)["drift"].value == "- tool use has 3%."
