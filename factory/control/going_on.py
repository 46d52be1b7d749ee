"""Whether a run goes on: with a process, or without one on a cluster, under whatever Dagster run.

A run is resumed only where it does not. Two drivers of one run would be kept apart by the claim on
its attempts, but the second would take the place of the first for nothing.
"""

import dagster as dg

from factory.control.adoption import left_alone
from factory.control.kube.chain import chain
from factory.control.kube.handles import has_followed
from factory.control.resuming import RESUMES
from factory.errors import SpecError


def refuse_while_going_on(
    instance: dg.DagsterInstance, run_id: str, *, of: dg.DagsterRun | None = None
) -> None:
    """Let a run be resumed only if nothing goes on with it.

    `of` is the Dagster run that is to resume it, if it is there already. What its own chain has
    left it takes up; and of two that are to resume one run, the earlier one does.

    Raises:
        SpecError: names what goes on, and what to do.
    """
    own = chain(instance, of.run_id) if of else []
    known = {record.dagster_run.run_id for record in own}
    others = [one for one in _family(instance, run_id) if one.dagster_run.run_id not in known]
    begun = min((record.storage_id for record in own), default=None)
    alive = [one.dagster_run.run_id for one in others if _is_in_the_way(instance, one, begun)]
    if alive:
        raise SpecError(f"Run {run_id} is still going on ({', '.join(alive)}). Cancel it first.")
    names = {one.dagster_run.run_id for one in others}
    for run in left_alone(instance):
        if run.run_id in names:
            raise SpecError(
                f"Run {run_id} goes on without a process that follows it. "
                f"`factory follow {run.run_id}` takes it up, and so does the sensor `left_alone`."
            )


def _is_in_the_way(instance: dg.DagsterInstance, record: dg.RunRecord, begun: int | None) -> bool:
    run = record.dagster_run
    if run.is_finished:
        return False
    return begun is None or record.storage_id < begun or has_followed(instance, run)


def _family(instance: dg.DagsterInstance, run_id: str) -> list[dg.RunRecord]:
    """The chain of the run, and those of the runs that have resumed it."""
    resumed = instance.get_runs(dg.RunsFilter(tags={RESUMES: run_id}))
    found = {
        record.storage_id: record
        for one in (run_id, *(run.run_id for run in resumed))
        for record in chain(instance, one)
    }
    return list(found.values())
