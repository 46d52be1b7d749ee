"""Whole runs: the driver as the control plane starts it, Ray, Bridge's `pretrain`, checkpoints."""

import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from factory.namespace.checkpoints import complete_checkpoints
from factory.observe.mixture.files import ledger_of
from factory.reports import MixtureLine, RunRecord, StepLine

type Begin = Callable[..., Any]

pytestmark = pytest.mark.slow


def steps_of(directory: Path) -> list[StepLine]:
    lines = (directory / "monitor" / "steps.jsonl").read_text().splitlines()
    return [StepLine.model_validate_json(line) for line in lines]


@pytest.fixture(scope="module")
def smoke(drive: Begin) -> tuple[Any, int, str]:
    """The smoke run as it is: one rank, the recipe unchanged."""
    run = drive("smoke-1")
    return run, *run.wait()


def test_the_loss_falls_and_everything_is_left_behind(smoke):
    run, code, output = smoke
    assert code == 0, output
    lines = steps_of(run.directory)
    assert [line.step for line in lines] == list(range(5, 81, 5))
    assert all(line.of == 80 for line in lines)
    fifth = len(lines) // 5
    losses = [line.loss for line in lines]
    assert statistics.mean(losses[-fifth:]) < 0.6 * statistics.mean(losses[:fifth])
    assert lines[-1].tokens == pytest.approx(80 * 32 * 256, rel=0.05)
    assert lines[-1].tokens < 80 * 32 * 256, "padding is not counted"
    record = RunRecord.model_validate_json((run.directory / "record.json").read_text())
    assert record.launch == run.launch
    assert record.world_size == 1
    config = (run.directory / "config.yaml").read_bytes()
    assert record.config_sha256
    assert b"MixProvider" in config
    checkpoints = run.directory / "checkpoints"
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text().strip() == "80"
    assert list((checkpoints / "iter_0000080").glob("*.distcp"))
    state = checkpoints / "iter_0000080" / "train_dataloader_dprank000.pt"
    assert state.stat().st_size > 1_000


def test_pipes_carry_the_phases_and_every_step(smoke):
    run, _, output = smoke
    phases = [phase["name"] for phase in run.said("phase")]
    begun = ["driver", "cluster", "workers", "build", "train"]
    assert phases == [*begun, "checkpoint", "complete", "done"]
    seconds = [phase["seconds"] for phase in run.said("phase")]
    assert seconds == sorted(seconds)
    assert [StepLine(**step) for step in run.said("step")] == steps_of(run.directory)
    assert "step 80/80" in output
    assert "(rank 0 pid=" in output, "what a rank prints reaches the driver's output"


def test_pipes_carry_every_line_of_the_ledger(smoke):
    run, _, output = smoke
    lines = [MixtureLine(**line) for line in run.said("mixture")]
    assert lines == ledger_of(run.directory)
    assert [line.step for line in lines] == list(range(5, 81, 5))
    assert "samples, " in output


def test_mlflow_has_the_run_outside_the_namespace_and_no_checkpoint(smoke, site):
    run, _, _ = smoke
    store = site.settings.state / "mlflow" / "public"
    run_id = (run.directory / "mlflow.id").read_text()
    with sqlite3.connect(store / "mlflow.db") as database:
        rows = database.execute("SELECT run_uuid, name, status FROM runs").fetchall()
        values = database.execute(
            "SELECT value FROM metrics WHERE run_uuid = ? AND key = 'lm loss' ORDER BY step",
            (run_id,),
        ).fetchall()
    assert (run_id, "smoke-1", "FINISHED") in rows
    assert len(values) == 16
    assert values[-1] < values[0]
    assert not [path for path in store.rglob("*") if path.suffix in (".distcp", ".pt")]


def test_a_second_start_continues_the_run_and_its_mlflow_run(smoke, drive: Begin, site):
    first, _, _ = smoke
    overrides = {"train.train_iters": "85"}
    second = drive("smoke-1", attempt=2, overrides=overrides)
    code, output = second.wait()
    assert code == 0, output
    lines = steps_of(first.directory)
    assert [line.step for line in lines][-2:] == [80, 85]
    assert lines[-1].tokens > lines[-2].tokens
    assert lines[-1].loss < 1.5
    with sqlite3.connect(site.settings.state / "mlflow" / "public" / "mlflow.db") as database:
        names = database.execute("SELECT run_uuid FROM runs WHERE name = 'smoke-1'").fetchall()
    assert names == [((first.directory / "mlflow.id").read_text(),)]
    assert (first.directory / "record.2.json").is_file()
    assert json.loads((first.directory / "record.json").read_text())["launch"]["attempt"] == 1


def test_a_finished_run_ends_at_once_and_touches_no_checkpoint(drive: Begin):
    overrides = {"train.train_iters": "4", "checkpoint.save_interval": "2"}
    first = drive("finished-1", overrides=overrides)
    code, output = first.wait()
    assert code == 0, output
    completed = (first.directory / "monitor" / "completed.jsonl").read_text().splitlines()
    saved = [json.loads(line)["detail"].partition(":")[0] for line in completed]
    assert saved == ["checkpoint of step 2", "checkpoint of step 4"], "the last one not twice"
    before = {path: path.stat().st_mtime_ns for path in first.directory.rglob("iter_*/**/*")}
    assert len(before) > 10
    code, output = drive("finished-1", attempt=2, overrides=overrides).wait()
    assert code == 0, output
    assert "nothing left to do: step 4 was its last" in output
    after = {path: path.stat().st_mtime_ns for path in first.directory.rglob("iter_*/**/*")}
    assert after == before
    assert [line.step for line in steps_of(first.directory)][-1:] == [4]
    assert not (first.directory / "record.2.json").exists(), "nothing was trained"


def test_two_ranks_on_one_cluster_equal_one_rank_on_another_at_the_same_time(drive, clusters):
    """The same global batches: one rank with two readers, or two ranks with one reader each."""
    overrides = {"train.train_iters": "6", "logger.log_interval": "1"}
    with clusters() as other:
        alone = drive("dp-1", loader_workers=2, overrides=overrides)
        together = drive("dp-2", address=other, workers=2, overrides=overrides)
        for run in (alone, together):
            code, output = run.wait()
            assert code == 0, output
    one, two = steps_of(alone.directory), steps_of(together.directory)
    assert [line.tokens for line in one] == [line.tokens for line in two]
    for left, right in zip(one, two, strict=True):
        assert left.loss == pytest.approx(right.loss, rel=2e-5)
        assert left.grad_norm == pytest.approx(right.grad_norm, rel=1e-3)
    record = RunRecord.model_validate_json((together.directory / "record.json").read_text())
    assert record.world_size == 2
    states = (together.directory / "checkpoints" / "iter_0000006").glob("train_dataloader_*")
    assert {path.name[-6:-3] for path in states} == {"000", "001"}


def test_a_killed_worker_ends_the_run_at_once_and_is_named(drive: Begin):
    run = drive("killed", workers=2, overrides={"train.train_iters": "5000"})
    run.until(lambda: len(run.said("step")) >= 1)
    others = [run.pid(0), run.pid(1)]
    os.kill(run.pid(1), signal.SIGKILL)
    killed = time.monotonic()
    code, output = run.wait(30)
    assert code == 1
    assert time.monotonic() - killed < 10
    assert "Rank 1 failed first: its process died" in output
    closed = run.rows()[-1]
    assert closed["method"] == "closed"
    assert "Rank 1 failed first" in closed["params"]["exception"]["message"]
    assert not any(psutil.pid_exists(pid) for pid in others)


def test_a_run_whose_place_is_needed_saves_and_one_driver_alone_has_it(drive: Begin):
    overrides = {"train.train_iters": "5000", "checkpoint.save_interval": "5000"}
    run = drive("place-needed", workers=2, overrides=overrides)
    run.until(lambda: len(run.said("step")) >= 1)
    before = run.rows()
    second = drive("place-needed", workers=2, overrides=overrides)
    code, output = second.wait(60)
    assert code == 4, output
    assert f"process {run.process.pid} on" in output
    assert run.rows()[: len(before)] == before
    opened = [row["params"]["extras"]["pid"] for row in run.rows() if row["method"] == "opened"]
    assert opened == [run.process.pid]
    others = [run.pid(0), run.pid(1)]
    run.process.terminate()
    code, output = run.wait(60)
    assert code == 75, output
    assert [phase["name"] for phase in run.said("phase")][-4:] == [
        "stopping",
        "checkpoint",
        "complete",
        "preempted",
    ]
    [checkpoint] = complete_checkpoints(run.run)
    assert checkpoint.step >= run.said("step")[-1]["step"]
    assert checkpoint.damage() == []
    assert {"train_dataloader_dprank000.pt", "train_dataloader_dprank001.pt"} < set(
        checkpoint.marker.files
    )
    assert "Traceback" not in output
    assert not any(psutil.pid_exists(pid) for pid in others)


def test_a_driver_whose_run_was_taken_over_ends_with_its_workers(drive: Begin):
    run = drive("taken-over")
    run.until(lambda: "(rank 0 pid=" in run.output)
    rank = run.pid(0)
    later = drive("taken-over", attempt=2, address="127.0.0.1:1")
    code, output = run.wait(60)
    assert code == 4, output
    assert "was replaced by attempt 2" in output
    assert not psutil.pid_exists(rank)
    later.process.terminate()
    assert later.wait(30)[0] == 75


def test_a_driver_that_is_told_to_stop_takes_its_workers_along_and_says_so(drive: Begin):
    run = drive("stopped")
    run.until(lambda: "(rank 0 pid=" in run.output)
    rank = run.pid(0)
    run.process.terminate()
    code, output = run.wait(30)
    assert code == 75, output
    assert run.rows()[-1]["method"] == "closed"
    assert run.rows()[-1]["params"]["exception"]["name"] == "Ended"
    assert not psutil.pid_exists(rank)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"overrides": {"train.train_iter": "5"}}, "Did you mean train.train_iters"),
        ({"overrides": {"train.train_iters": "0"}}, "from 1 to 100,000,000"),
        ({"overrides": {"model.bf16": "true"}}, "set by the cpu profile"),
    ],
)
def test_a_launch_that_cannot_run_is_refused_before_it_needs_a_cluster(
    drive: Begin, spec, expected
):
    run = drive(f"refused-{len(expected)}", address="127.0.0.1:1", **spec)
    code, output = run.wait(60)
    assert code == 3
    assert expected in output
    assert run.said("phase")[0]["name"] == "driver"


def test_the_driver_imports_neither_torch_nor_bridge():
    code = (
        "import sys, factory.training.driver; "
        "print([m for m in ('torch', 'megatron', 'ray') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
