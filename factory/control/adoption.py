"""Adoption: a run on a cluster goes on without the process that followed it, and another follows.

Its process was killed, or told to end where a service moves it (`pipes`). Dagster's run monitoring
starts a process that crashed again, for the same Dagster run; a run that has failed with its
process is not started again by anything. The sensor `left_alone` has another Dagster run take each
of those up, and `factory follow` does it by hand.
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from factory.control.abandoned import end_abandoned_runs
from factory.control.kube.handles import ADOPTS, GOES_ON

SECONDS_BETWEEN = 30

_OVER = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def left_alone(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Runs that have failed for want of their process, and go on where they were sent.

    A run that a person has cancelled is not among them: what it left is an orphan.
    """
    failed = dg.RunsFilter(tags={GOES_ON: "true"}, statuses=[dg.DagsterRunStatus.FAILURE])
    return [run for run in instance.get_runs(failed) if not _is_followed(instance, run)]


def adoption_sensor(jobs: Sequence[dg.JobDefinition]) -> dg.SensorDefinition:
    """The sensor `left_alone` over the training jobs; on without being turned on."""

    def sense(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        end_abandoned_runs(context.instance)
        found = left_alone(context.instance)
        for run in found:
            yield dg.RunRequest(
                run_key=run.run_id,
                job_name=run.job_name,
                run_config=run.run_config,
                tags={ADOPTS: run.run_id},
            )
        if not found:
            yield dg.SkipReason("every run on a cluster is followed by its process")

    return dg.SensorDefinition(
        name="left_alone",
        evaluation_fn=sense,
        jobs=jobs,
        minimum_interval_seconds=SECONDS_BETWEEN,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Takes up runs that go on on a cluster although the process that followed "
        "them is gone.",
    )


def _is_followed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether another run has taken it up, or is about to."""
    adopting = instance.get_runs(dg.RunsFilter(tags={ADOPTS: run.run_id}))
    again = instance.get_runs(dg.RunsFilter(tags={"dagster/parent_run_id": run.run_id}))
    return any(one.status not in _OVER or GOES_ON in one.tags for one in (*adopting, *again))
