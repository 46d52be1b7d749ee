"""What became of a run, as Dagster knows it.

A run is not over while another one goes on with it: executes it again, resumes it, or takes it up
from a process that is gone. What follows for its objects is in `kube.orphans`.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from factory.control.adoption import to_be_taken_up
from factory.control.kube.chain import ADOPTS
from factory.control.kube.handles import GOES_ON, handles
from factory.control.kube.names import label_value
from factory.control.kube.orphans import GRACE, Fate, Judge, Known
from factory.control.owner import owner
from factory.control.resuming import RESUMES

_FINISHED = (
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
SETTLED_FOR = timedelta(days=1)
"""How long after a run's end is told it is looked whether all of it is gone: the end is on record
before anything is removed, and whoever was killed between the two has left its Secret."""

MOST_SETTLED = 200
"""Of those, the newest: each look asks the cluster for a Secret of each of their attempts."""

UNFINISHED = [status for status in dg.DagsterRunStatus if status not in _FINISHED]


def judge(
    instance: dg.DagsterInstance, grace: timedelta = GRACE, *, adopting: bool = False
) -> Judge:
    """Who tells what the runs of this Dagster left behind.

    Where a daemon is `adopting`, a run that it is about to take up is not over, however long ago
    its process ended: nobody was there meanwhile to do it.

    Raises:
        SettingsError: this Dagster cannot tell its objects from another's.
    """
    return Judge(
        owner=owner(instance),
        known=partial(fates, instance, grace=grace, adopting=adopting),
        begun=partial(begun, instance),
        grace=grace,
    )


def begun(instance: dg.DagsterInstance, cluster: str) -> set[str]:
    """The RayJobs on record on that cluster, of runs that are over, of which something may be left.

    Those are runs whose end is not told, however old; and those that have ended of late.
    """
    finished = list(_FINISHED)
    untold = dg.RunsFilter(tags={GOES_ON: "true"}, statuses=finished)
    since = datetime.now(UTC) - SETTLED_FOR
    of_late = dg.RunsFilter(tags={GOES_ON: "false"}, statuses=finished, updated_after=since)
    runs = [*instance.get_runs(untold), *instance.get_runs(of_late, limit=MOST_SETTLED)]
    return {
        handle.name
        for run in runs
        for handle in handles(instance, run.run_id)
        if handle.launch.spec.cluster == cluster
    }


def fates(
    instance: dg.DagsterInstance,
    runs: Collection[str],
    *,
    grace: timedelta,
    adopting: bool = False,
) -> Known:
    """What became of these runs; those that Dagster does not know are left out.

    Runs that go on, and those that have ended within the grace time, count for every run that they
    go on with. What ended before that is too long ago to matter to another run than itself.
    """
    if not runs:
        return {}
    found: dict[str, Fate] = {}
    itself = dg.RunsFilter(run_ids=list(runs))
    for record in instance.get_run_records(itself):
        found[label_value(record.dagster_run.run_id)] = _fate(record)
    for run in to_be_taken_up(instance) if adopting else ():  # before those that take one up
        for run_id in _line(instance, run):
            found[label_value(run_id)] = Fate("left alone", None)
    going_on = dg.RunsFilter(statuses=UNFINISHED)
    recent = dg.RunsFilter(updated_after=datetime.now(UTC) - grace)
    for chosen in (going_on, recent):  # in this order, so that one which ends meanwhile is in one
        for record in instance.get_run_records(chosen):
            for run_id in _line(instance, record.dagster_run):
                key = label_value(run_id)
                found[key] = _later(found.get(key), _fate(record))
    return {run: found[run] for run in runs if run in found}


def _line(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[str]:
    """The run, and every run that it goes on with."""
    seen: set[str] = set()
    waiting = {run.run_id}
    while waiting:
        run_id = waiting.pop()
        seen.add(run_id)
        yield run_id
        found = run if run_id == run.run_id else instance.get_run_by_id(run_id)
        if found is not None:
            tags = (found.tags.get(RESUMES), found.tags.get(ADOPTS))
            before = (found.root_run_id, found.parent_run_id, *tags)
            waiting |= {one for one in before if one and one not in seen}


def _fate(record: dg.RunRecord) -> Fate:
    run = record.dagster_run
    if not run.is_finished:
        return Fate(run.status.value.lower(), None)
    if record.end_time is None:  # it ended before it began
        return Fate(run.status.value.lower(), record.update_timestamp)
    return Fate(run.status.value.lower(), datetime.fromtimestamp(record.end_time, UTC))


def _later(one: Fate | None, other: Fate) -> Fate:
    if one is None or other.ended is None:
        return other
    return other if one.ended is not None and other.ended > one.ended else one
