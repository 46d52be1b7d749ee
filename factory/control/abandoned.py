"""What dead processes left behind, ended before new work starts.

A run whose process was killed stays "started" in Dagster for ever, and Dagster counts it among the
runs that may go on at once. A writer that was killed leaves its staging directory. Clusters that
lost their owner are swept by `sessions`.
"""

from datetime import timedelta

import dagster as dg
from pydantic import ValidationError

from factory.namespace.owner import Owner, this_process

OWNER_TAG = "factory/owner"
"""Run tag with the process that executes the run, as JSON."""

IN_PROGRESS = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

STAGING_AGE = timedelta(minutes=10)
"""How old a dead writer's staging must be: where its death cannot be proved, age decides."""


def owner_tags() -> dict[str, str]:
    """Tags for a run that this process executes."""
    return {OWNER_TAG: this_process().model_dump_json()}


def end_abandoned_runs(instance: dg.DagsterInstance) -> list[str]:
    """Report as failed every run whose process is provably gone; return their ids."""
    ended: list[str] = []
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=IN_PROGRESS)):
        owner = _owner(instance, run)
        if owner is not None and owner.is_gone():
            instance.report_run_failed(run, f"Its {owner} is gone: it was killed, or crashed.")
            ended.append(run.run_id)
    return ended


def is_abandoned(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the process of a run is provably gone."""
    owner = _owner(instance, run)
    return owner is not None and owner.is_gone()


def _owner(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Owner | None:
    """The process that executes the run, where the run itself says so.

    A run that is executed again from the UI begins with a copy of the tags of the one before, and
    anybody may write a tag. Where nothing is known, the process is the daemon's to watch.
    """
    tag = run.tags.get(OWNER_TAG)
    if tag is None:
        return None
    before = instance.get_run_by_id(run.parent_run_id) if run.parent_run_id else None
    if before is not None and before.tags.get(OWNER_TAG) == tag:
        return None
    try:
        return Owner.model_validate_json(tag)
    except ValidationError:
        return None
