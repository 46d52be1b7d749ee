"""Adoption: a run on a cluster goes on without the process that followed it, and another follows.

Its process was killed, or told to end where a service moves it (`pipes`). Dagster's run monitoring
starts a process that crashed again, for the same Dagster run; a run that has failed with its
process is not started again by anything. The sensor `left_alone` has another Dagster run take each
of those up, and `factory follow` does it by hand.
"""

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from factory.control.abandoned import end_abandoned_runs
from factory.control.follower import is_cancelled
from factory.control.kube.chain import ADOPTS, adopts, chain
from factory.control.kube.handles import GOES_ON, Journal, has_followed
from factory.control.places import STEP
from factory.errors import RunFailed
from factory.settings import Deployment

SECONDS_BETWEEN = 30

TRIES = 5
"""Processes, one after the other, that end at once and so have followed nothing."""

AT_ONCE_SECONDS = 120.0
"""Less than that is no following."""


def left_alone(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Runs that have failed for want of their process, and go on where they were sent.

    Also those whose end nobody has acted on yet. A run that a person has cancelled is not among
    them: what it left is an orphan.
    """
    failed = dg.RunsFilter(tags={GOES_ON: "true"}, statuses=[dg.DagsterRunStatus.FAILURE])
    runs = [run for run in instance.get_runs(failed) if has_followed(instance, run)]
    return [run for run in runs if not _is_followed(instance, run)]


def to_be_taken_up(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Those of them that the sensor takes up now or in some minutes."""
    alone = left_alone(instance)
    return [run for run in alone if _due_at(chain(instance, run.run_id)) is not None]


def whose_chain_has(
    instance: dg.DagsterInstance, runs: Sequence[dg.DagsterRun], run_id: str
) -> dg.DagsterRun | None:
    """That run, or the one among these that has followed it, and others before it."""
    for run in runs:
        if run_id in [record.dagster_run.run_id for record in chain(instance, run.run_id)]:
            return run
    return None


@contextlib.contextmanager
def acting_on_the_end(
    context: dg.OpExecutionContext, deployment: Deployment, step_key: str = STEP
) -> Generator[None]:
    """When what is inside is over, the end of the run is told: nobody is to take it up.

    It is not where this process breaks, or is only told to end where a service moves it.
    """
    try:
        yield
    except RunFailed:
        _settle(context, step_key)
        raise
    except DagsterExecutionInterruptedError:
        if deployment == "laptop" or is_cancelled(context):
            _settle(context, step_key)
        raise
    _settle(context, step_key)


def adoption_sensor(jobs: Sequence[dg.JobDefinition]) -> dg.SensorDefinition:
    """The sensor `left_alone` over the training jobs; on without being turned on."""

    def sense(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        end_abandoned_runs(context.instance)
        found = left_alone(context.instance)
        for run in found:
            records = chain(context.instance, run.run_id)
            due = _due_at(records)
            if due is None:
                last = Journal(context.instance, run, STEP).last()
                named = last.launch.run_id if last is not None else run.run_id
                yield dg.SkipReason(
                    f"run {named} is alone, and {TRIES} that took it up have failed at once: "
                    f"see why, then `factory follow {named}`"
                )
            elif due > time.time():
                yield dg.SkipReason(f"run {run.run_id} is taken up once more in a few minutes")
            else:
                yield dg.RunRequest(
                    # One for each adoption: Dagster never asks twice with one key.
                    run_key=f"{run.run_id}-{len(records)}",
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
    runs = [record.dagster_run for record in chain(instance, run.run_id)]
    if not all(one.is_finished for one in runs):
        return True
    later = runs[[one.run_id for one in runs].index(run.run_id) + 1 :]
    return any(has_followed(instance, one) for one in later)


def _due_at(records: Sequence[dg.RunRecord]) -> float | None:
    """When a chain is to be taken up again, in seconds since the epoch; none after too many tries.

    The first two at once, then later and later, always within what the sweeper waits for.
    """
    in_vain = 0
    for record in reversed(records):
        if not adopts(record.dagster_run) or _seconds(record) > AT_ONCE_SECONDS:
            break
        in_vain += 1
    if in_vain >= TRIES:
        return None
    wait = SECONDS_BETWEEN * (2**in_vain - 2) if in_vain > 1 else 0.0
    return _ended_at(records[-1]) + wait


def _seconds(record: dg.RunRecord) -> float:
    """How long it has executed."""
    return _ended_at(record) - record.start_time if record.start_time is not None else 0.0


def _ended_at(record: dg.RunRecord) -> float:
    return record.end_time or record.update_timestamp.timestamp()


def _settle(context: dg.OpExecutionContext, step_key: str) -> None:
    journal = Journal(context.instance, context.run, step_key)
    last = journal.last()
    if last is not None and last.ended is not None:
        journal.settle()
