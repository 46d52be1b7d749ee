"""What was damaged is made again, and what dead processes left behind is ended."""

import os
import signal
import subprocess
import sys

import dagster as dg
import pytest

from factory.control import freshness
from factory.control.abandoned import OWNER_TAG, end_abandoned_runs, owner_tags
from factory.namespace.owner import Owner
from tests.control.a_run import a_run
from tests.control.conftest import FAST, Bench


def test_a_changed_byte_is_found_and_the_version_made_again(bench: Bench) -> None:
    assert bench.run(*FAST).success
    version = bench.current("clean")
    file = version.path / "samples" / "00000.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1  # the same size: only the hash tells
    file.chmod(0o644)
    file.write_bytes(content)
    assert version.key in freshness.stale(bench.declared, bench.settings)
    result = bench.run(*FAST)
    assert result.success
    again = bench.current("clean")
    assert again.id == version.id
    assert bench.namespace.verify(again) == []


def dead() -> Owner:
    """A process that has ended, as it would have described itself."""
    code = "from factory.namespace.owner import this_process as t; print(t().model_dump_json())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return Owner.model_validate_json(done.stdout)


@dg.op
def nothing() -> None:
    return None


@dg.job
def idle() -> None:
    nothing()


def started(instance: dg.DagsterInstance, tags: dict[str, str]) -> str:
    run = instance.create_run_for_job(idle, tags=tags)
    instance.report_dagster_event(
        dg.DagsterEvent(event_type_value=dg.DagsterEventType.RUN_START.value, job_name=idle.name),
        run.run_id,
    )
    return run.run_id


def test_a_run_whose_process_was_killed_is_reported_as_failed(
    instance: dg.DagsterInstance,
) -> None:
    killed = started(instance, {OWNER_TAG: dead().model_dump_json()})
    alive = started(instance, owner_tags())
    from_ui = started(instance, {})
    assert end_abandoned_runs(instance) == [killed]
    states = {run: instance.get_run_by_id(run).status.value for run in (killed, alive, from_ui)}
    assert states == {killed: "FAILURE", alive: "STARTED", from_ui: "STARTED"}
    assert end_abandoned_runs(instance) == []


@pytest.mark.parametrize("tag", ["me", "{}", "", "[" * 5000])
def test_a_tag_that_names_no_process_ends_nothing(instance: dg.DagsterInstance, tag: str) -> None:
    started(instance, {OWNER_TAG: tag})
    killed = started(instance, {OWNER_TAG: dead().model_dump_json()})
    assert end_abandoned_runs(instance) == [killed]


def test_the_owner_that_a_run_executed_again_has_copied_is_not_its_own(
    instance: dg.DagsterInstance,
) -> None:
    before = a_run(instance, "FAILURE", {OWNER_TAG: dead().model_dump_json()})
    again = a_run(instance, "STARTED", again=before)
    assert again.tags[OWNER_TAG] == before.tags[OWNER_TAG]
    assert end_abandoned_runs(instance) == []
    instance.add_run_tags(again.run_id, {OWNER_TAG: dead().model_dump_json()})
    assert end_abandoned_runs(instance) == [again.run_id]


def test_a_pid_that_is_used_again_is_another_process(instance: dg.DagsterInstance) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        before = dead()
        assert before.start_ticks is not None
        earlier = {"pid": child.pid, "start_ticks": before.start_ticks - 1000}
        reused = before.model_copy(update=earlier)
        killed = started(instance, {OWNER_TAG: reused.model_dump_json()})
        assert end_abandoned_runs(instance) == [killed]
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
