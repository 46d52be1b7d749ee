"""Dagster runs of the smoke job, and what their processes have written down."""

import uuid
from collections.abc import Mapping

import dagster as dg

from factory.control.kube.handles import Handle
from tests.control.kube.submissions import launch

STEP = "train"


def a_run(
    instance: dg.DagsterInstance,
    status: str = "FAILURE",
    tags: Mapping[str, str] | None = None,
    *,
    again: dg.DagsterRun | None = None,
) -> dg.DagsterRun:
    """A run in a state; `again` executes that one again as the UI does, with a copy of its tags."""
    before, root, copied = None, None, dict[str, str]()
    if again is not None:
        before, root = again.run_id, again.root_run_id or again.run_id
        copied = {**again.tags, "dagster/parent_run_id": before, "dagster/root_run_id": root}
    made = dg.DagsterRun(
        job_name="smoke",
        run_id=str(uuid.uuid4()),
        status=dg.DagsterRunStatus[status],
        tags={**copied, **(tags or {})},
        parent_run_id=before,
        root_run_id=root,
        run_config={"seed": 7},
    )
    return instance.add_run(made)


def tags_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Mapping[str, str]:
    """As they are now."""
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.tags


def fails(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Its process is killed, and somebody notices."""
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    instance.report_run_failed(found)


def handle(run: dg.DagsterRun, **changes: object) -> Handle:
    """What the process of a run knows of its first attempt."""
    fields: dict[str, object] = {
        "run_id": run.run_id,
        "root_run_id": run.run_id,
        "step_key": STEP,
        "launch": launch(),
        "name": "run-1",
        **changes,
    }
    return Handle.model_validate(fields)
