"""The sensor `orphans`: what ended runs left behind is removed, one cluster after the other.

A tick has a minute, and a cluster that does not answer takes its part of it. So the cursor holds
the cluster that was swept last, and the next tick begins behind it.
"""

import time
from collections.abc import Iterable

import dagster as dg

from factory.control.clusters import Kubernetes, declared
from factory.control.left_behind import Report, on_cluster, on_this_machine, on_wrong
from factory.control.sessions import Sessions
from factory.settings import Settings

SECONDS_BETWEEN = 300
BEGIN_SECONDS = 20.0
"""Into a tick, no other cluster is begun."""

REMOVE_SECONDS = 40.0
"""Into a tick, nothing more is waited for. Dagster ends a tick after 60."""


def orphans_sensor(settings: Settings) -> dg.SensorDefinition:
    """The sensor `orphans` on every cluster of definitions/clusters, and on this machine."""
    status = dg.DefaultSensorStatus

    def orphans(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        from factory.control.fates import judge

        begun = time.monotonic()
        by = judge(context.instance, adopting=True)
        found = declared()
        reports = [on_this_machine(Sessions(settings.state), by, remove=True)]
        reports += on_wrong(found.wrong)
        for cluster in in_turn(found.clusters.values(), after=context.cursor or ""):
            spent = time.monotonic() - begun
            if spent > BEGIN_SECONDS:
                break
            reports.append(on_cluster(cluster, by, REMOVE_SECONDS - spent))
            context.update_cursor(cluster.name)
        return dg.SkipReason("; ".join(_words(reports)) or "nothing was left behind")

    return dg.SensorDefinition(
        name="orphans",
        evaluation_fn=orphans,
        minimum_interval_seconds=SECONDS_BETWEEN,
        default_status=status.RUNNING if settings.sensors_on else status.STOPPED,
        description="Removes RayJobs, RayClusters, Secrets and local Ray sessions whose run has "
        "ended or is unknown to this Dagster, after a grace time. It starts no run.",
    )


def in_turn(declared: Iterable[object], after: str) -> list[Kubernetes]:
    """The Kubernetes clusters by name, beginning behind that one."""
    found = sorted(
        (one for one in declared if isinstance(one, Kubernetes)), key=lambda one: one.name
    )
    return [one for one in found if one.name > after] + [one for one in found if one.name <= after]


def _words(reports: Iterable[Report]) -> Iterable[str]:
    for report in reports:
        for row in report.rows:
            yield f"{row.cluster}: {row.kind} {row.name} of run {row.run} ({row.why}) {row.outcome}"
        yield from report.notes
