"""What dead processes left behind, ended before new work starts.

A run whose process was killed stays "started" in Dagster for ever, and Dagster counts it among the
runs that may go on at once. A writer that was killed leaves its staging directory. Clusters that
lost their owner are swept by `sessions`.
"""

from datetime import timedelta

import dagster as dg

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
        tag = run.tags.get(OWNER_TAG)
        if tag is None:  # launched from the UI: its process is the daemon's to watch
            continue
        owner = Owner.model_validate_json(tag)
        if owner.is_gone():
            instance.report_run_failed(run, f"Its {owner} is gone: it was killed, or crashed.")
            ended.append(run.run_id)
    return ended
