"""What one look at an API server showed of one attempt, and what earlier looks have shown.

A list of a namespace holds the objects of many runs; `observe` picks those of one. What they mean
is in `states`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from factory.control.answers import Verdict
from factory.control.kube.fields import (
    Object,
    condition,
    holds,
    label,
    moment,
    name,
    objects,
    text,
)

JOB_STATUSES = frozenset({"", "PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"})
"""Of Ray; any other is not one that its documentation knows."""

UNANSWERED = "Failure"
"""Not Ray's: KubeRay reads what the API server says of a head that does not answer as a job."""

DEPLOYMENT_STATUSES = frozenset(
    {
        "",
        "Initializing",
        "Waiting",
        "Running",
        "Complete",
        "Failed",
        "ValidationFailed",
        "Suspending",
        "Suspended",
        "Retrying",
    }
)
"""Of KubeRay 1.5 and 1.6."""

_UID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
POD_GROUP = "pod-group-name"
"""Annotation that KAI puts on each pod of a gang."""


@dataclass(frozen=True)
class Seen:
    """What to remember from one look to the next; small enough for the event log."""

    existed: bool = False
    """The RayJob was there once, so its absence means that it was deleted."""
    cluster: str = ""
    driver_started: str = ""
    """When Ray started the driver, in its own words: another time is another start."""
    verdict: Verdict | None = None
    """What was recorded for this attempt; it does not change any more."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One attempt at one moment."""

    name: str
    """Of its RayJob."""
    now: datetime
    rayjob: Object | None = None
    raycluster: Object | None = None
    pods: Sequence[Object] | None = None
    """None where they cannot be listed, as behind a proxy for Ray's objects alone."""
    podgroup: Object | None = None
    events: Sequence[Object] = ()
    unreachable: str = ""
    """Why the API server could not be asked; then nothing else here counts."""
    paused: bool = False
    """Out of reach for longer than the cluster may be."""
    given_up: Sequence[str] = ()
    """Ray's words on workers that it took for dead, asked for once the driver has failed."""
    seen: Seen = field(default_factory=Seen)

    @property
    def deployment_status(self) -> str:
        """KubeRay's word on the RayJob."""
        return text(self.rayjob, "status", "jobDeploymentStatus")

    @property
    def job_status(self) -> str:
        """Ray's word on the driver, as KubeRay heard it last."""
        return text(self.rayjob, "status", "jobStatus")

    @property
    def head(self) -> Object | None:
        """The pod of the head, if there is one."""
        heads = (one for one in self.pods or () if label(one, "ray.io/node-type") == "head")
        return next(heads, None)

    @property
    def ready_since(self) -> datetime | None:
        """When the cluster was complete for the first time; later losses do not change it."""
        if not holds(self.raycluster, "RayClusterProvisioned"):
            return None
        return moment(condition(self.raycluster, "RayClusterProvisioned"), "lastTransitionTime")

    @property
    def ended_at(self) -> datetime | None:
        """When the driver ended, or when KubeRay noticed."""
        return moment(self.rayjob, "status", "rayJobInfo", "endTime") or moment(
            self.rayjob, "status", "endTime"
        )

    @property
    def anything_left(self) -> bool:
        """Whether an object of the attempt is still there."""
        return bool(self.rayjob or self.raycluster or self.pods or self.podgroup)

    def remembered(self) -> Seen:
        """What the next look should know of this one."""
        if self.unreachable or self.rayjob is None:
            return self.seen
        return replace(
            self.seen,
            existed=True,
            cluster=self.seen.cluster or text(self.rayjob, "status", "rayClusterName"),
            driver_started=self.seen.driver_started
            or text(self.rayjob, "status", "rayJobInfo", "startTime"),
        )


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What a namespace holds, of many runs."""

    rayjobs: Sequence[Object]
    rayclusters: Sequence[Object] = ()
    pods: Sequence[Object] | None = ()
    podgroups: Sequence[Object] = ()
    events: Sequence[Object] = ()


def observe(of: str, now: datetime, listed: Listed) -> Observed:
    """Pick what belongs to the RayJob of that name, which need not be there any more.

    Asking, clocks and memory are added by the caller with `dataclasses.replace`.
    """
    rayjob = next((one for one in listed.rayjobs if name(one) == of), None)
    uid = text(rayjob, "metadata", "uid")
    raycluster = _raycluster(of, rayjob, listed.rayclusters)
    named = name(raycluster) or text(rayjob, "status", "rayClusterName")
    cluster = re.compile(re.escape(named) or re.escape(of) + r"-[a-z0-9]{5}")
    pods = listed.pods
    return Observed(
        name=of,
        now=now,
        rayjob=rayjob,
        raycluster=raycluster,
        pods=None if pods is None else [one for one in pods if _is_pod(of, uid, cluster, one)],
        podgroup=next((one for one in listed.podgroups if _is_group(of, uid, name(one))), None),
        events=[one for one in listed.events if _is_event(of, uid, cluster, one)],
    )


def _raycluster(of: str, rayjob: Object | None, rayclusters: Sequence[Object]) -> Object | None:
    """The one that the RayJob names now; of a RayJob that is gone, any that it left."""
    current = text(rayjob, "status", "rayClusterName")
    owned = (one for one in rayclusters if _owned_by(of, one))
    return next((one for one in owned if not current or name(one) == current), None)


def _owned_by(of: str, raycluster: Object) -> bool:
    owners = objects(raycluster, "metadata", "ownerReferences")
    return any(text(one, "kind") == "RayJob" and text(one, "name") == of for one in owners) or (
        label(raycluster, "ray.io/originated-from-crd") == "RayJob"
        and label(raycluster, "ray.io/originated-from-cr-name") == of
    )


def _is_group(of: str, uid: str, group: str) -> bool:
    return re.fullmatch(f"pg-{re.escape(of)}-{re.escape(uid) or _UID}", group) is not None


def _is_pod(of: str, uid: str, cluster: re.Pattern[str], pod: Object) -> bool:
    return cluster.fullmatch(label(pod, "ray.io/cluster")) is not None or _is_group(
        of, uid, text(pod, "metadata", "annotations", POD_GROUP)
    )


def _is_event(of: str, uid: str, cluster: re.Pattern[str], event: Object) -> bool:
    kind = text(event, "involvedObject", "kind")
    about = text(event, "involvedObject", "name")
    if kind == "RayJob":
        return (about == of and text(event, "involvedObject", "uid") in ("", uid or about)) or (
            about == of and not uid
        )
    if kind == "PodGroup":
        return _is_group(of, uid, about)
    if kind == "Pod":  # pods are named after their cluster and group
        return re.match(cluster.pattern + "-", about) is not None
    return kind == "RayCluster" and cluster.fullmatch(about) is not None
