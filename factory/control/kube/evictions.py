"""Was a place taken away, or a node lost? Read from events and from pods that are not there.

KubeRay does not say it. In HTTPMode it keeps such a job Running for ever (1.5), or starts it a
second time under the same id (1.6); in SidecarMode it ends it as Failed, like any other failure.
An event that is younger than the job's own end says nothing about that end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from factory.control.kube.fields import (
    Object,
    at,
    condition,
    holds,
    label,
    mapping,
    moment,
    name,
    objects,
    short,
    text,
)
from factory.control.kube.observed import DEPLOYMENT_STATUSES, JOB_STATUSES, Observed

SKEW = timedelta(seconds=5)
"""Times are the API server's, the scheduler's, the kubelets' and the head's."""

_WITHOUT_A_DRIVER = DEPLOYMENT_STATUSES - {"Running", "Complete", "Failed"}
"""A suspended job has no head either, and a head that dies before there is a job is made again."""

_PREEMPTED = re.compile(r"Pod \S+?/(?P<pod>\S+) was preempted")
_WORKLOAD = re.compile(r"workload \S+?/(?P<group>\S+?)\.?(?:\s|$)")
_STALE = re.compile(r"minimum required number of pods")
_MOVED = re.compile(r"resource consolidation")
_GROUP = re.compile(r"pg-(?P<name>.+?)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_DISRUPTIONS = {
    "PreemptionByScheduler": "its place was given to a pod of higher priority",
    "EvictionByEvictionAPI": "its node was drained",
    "DeletionByTaintManager": "its node was tainted, most often because it does not answer",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "its node ran short of something, or was shut down",
}
_POD_EVENTS = {
    "Preempted": "its place was given to a pod of higher priority",
    "TaintManagerEviction": "its node was tainted, most often because it does not answer",
    "Evicted": "its node ran short of something",
}


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What ended an attempt from outside."""

    words: str
    evidence: tuple[str, ...]


def evicted(observed: Observed) -> Taken | None:
    """What took the attempt's place, if something did before it had ended."""
    for event in _evictions(observed):
        return Taken(
            words=f"it was evicted{_why(event)}",
            evidence=(f"event Evict: {short(text(event, 'message').partition(chr(10))[0])}",),
        )
    return next(_disruptions(observed), None)


def lost(observed: Observed) -> Taken | None:
    """What of the running cluster went away without anybody having taken its place."""
    started = text(observed.rayjob, "status", "rayJobInfo", "startTime")
    if not (observed.ready_since or started or observed.seen.driver_started):
        return None
    found = _started_again(observed)
    if found is None and observed.deployment_status not in _WITHOUT_A_DRIVER:
        found = _head_lost(observed)
    if found is None and observed.deployment_status == "Failed":
        found = next(_workers_lost(observed), None)
    return found


def _in_time(observed: Observed, moment: datetime | None) -> bool:
    ended = observed.ended_at
    return ended is None or moment is None or moment <= ended + SKEW


def _evictions(observed: Observed) -> Iterator[Object]:
    for event in observed.events:
        if text(event, "reason") != "Evict" or not _in_time(observed, at(event)):
            continue
        message = text(event, "message")
        if _STALE.search(message):  # the rest of a gang that had lost a pod before
            continue
        named = _PREEMPTED.search(message)
        if named is None or _is_ours(observed, named["pod"]):
            yield event


def _is_ours(observed: Observed, pod: str) -> bool:
    cluster = text(observed.rayjob, "status", "rayClusterName") or name(observed.raycluster)
    return not cluster or pod.startswith(f"{cluster}-")


def _why(event: Object) -> str:
    if by := _winner(event):
        return f" in favour of {by}"
    moved = _MOVED.search(text(event, "message"))
    return ", to be placed again: KAI moves runs together to make room" if moved else ""


def _winner(event: Object) -> str:
    group = text(event, "metadata", "annotations", "evictor-pod-group-name")
    if not group and (said := _WORKLOAD.search(text(event, "message"))):
        group = said["group"]
    matched = _GROUP.fullmatch(group)
    return matched["name"] if matched else group


def _disruptions(observed: Observed) -> Iterator[Taken]:
    for pod in observed.pods or ():
        told = condition(pod, "DisruptionTarget")
        words = _DISRUPTIONS.get(text(told, "reason"))
        since = moment(told, "lastTransitionTime")
        if words and holds(pod, "DisruptionTarget") and _in_time(observed, since):
            yield Taken(
                words=f"{name(pod)} was evicted: {words}",
                evidence=(f"{name(pod)}: {text(told, 'reason')}: {short(text(told, 'message'))}",),
            )
    for event in observed.events:
        words = _POD_EVENTS.get(text(event, "reason"))
        about = text(event, "involvedObject", "name")
        is_pod = text(event, "involvedObject", "kind") == "Pod"
        taken_back = text(event, "message").startswith("Cancelling")
        if words and is_pod and not taken_back and _in_time(observed, at(event)):
            yield Taken(
                words=f"{about} was evicted: {words}",
                evidence=(f"event {text(event, 'reason')}: {short(text(event, 'message'))}",),
            )


def _started_again(observed: Observed) -> Taken | None:
    """KubeRay counts neither a new head's second start nor that of a suspended job."""
    started = text(observed.rayjob, "status", "rayJobInfo", "startTime")
    cluster = text(observed.rayjob, "status", "rayClusterName")
    seen = observed.seen
    if seen.driver_started and started and started != seen.driver_started:
        return Taken(
            words="its driver was lost, and KubeRay started it a second time",
            evidence=(f"rayJobInfo.startTime was {seen.driver_started}, now {started}",),
        )
    if seen.driver_started and cluster and seen.cluster and cluster != seen.cluster:
        return Taken(
            words="its cluster was lost, and KubeRay made another",
            evidence=(f"rayClusterName was {seen.cluster}, now {cluster}",),
        )
    return None


def _head_lost(observed: Observed) -> Taken | None:
    if observed.head is not None:
        return _head_is_another(observed, observed.head)
    if observed.pods is None:
        return None
    gone = _killed(observed, "-head-")
    if observed.deployment_status == "Failed":  # its cluster may be gone because it had ended
        return Taken(words="its head was lost", evidence=(gone,)) if gone else None
    if gone or _head_is_missed(observed):
        why = gone or f"HeadPodReady: {text(_head_ready(observed), 'reason') or 'no cluster'}"
        return Taken(words="its head was lost", evidence=("no pod of the head", why))
    return None


def _head_ready(observed: Observed) -> Object:
    return condition(observed.raycluster, "HeadPodReady")


def _head_is_missed(observed: Observed) -> bool:
    """Whether more than one list of pods, which may be an old one, says that the head is gone."""
    if observed.raycluster is None:
        return not observed.pods
    return (
        text(_head_ready(observed), "status") == "False" or observed.job_status not in JOB_STATUSES
    )


def _head_is_another(observed: Observed, head: Object) -> Taken | None:
    """A head that is younger than the cluster's first readiness is not the driver's."""
    if (began := _began_anew(observed, head)) is not None:
        return Taken(
            words="its head was lost, and KubeRay made another"
            if _made_anew(observed, head)
            else "its head ended and was started again",
            evidence=(
                f"{name(head)} began at {began:%H:%M:%S}, "
                f"the cluster was ready at {observed.ready_since:%H:%M:%S}",
            ),
        )
    for container in objects(head, "status", "containerStatuses"):
        ended = mapping(container, "state", "terminated")
        if ended and _is_ray(container) and _in_time(observed, moment(ended, "finishedAt")):
            return Taken(
                words="its head ended",
                evidence=(f"{name(head)}: {text(ended, 'reason') or 'terminated'}",),
            )
    return None


def _made_anew(observed: Observed, pod: Object) -> bool:
    made = moment(pod, "metadata", "creationTimestamp")
    return made is not None and _after_ready(observed, made)


def _after_ready(observed: Observed, moment: datetime) -> bool:
    ready = observed.ready_since
    return ready is not None and moment > ready + SKEW and _in_time(observed, moment)


def _began_anew(observed: Observed, pod: Object) -> datetime | None:
    """When a pod, or Ray in it, began, if that was after the cluster was ready."""
    began = [moment(pod, "metadata", "creationTimestamp")] + [
        moment(container, "state", "running", "startedAt")
        for container in objects(pod, "status", "containerStatuses")
        if _is_ray(container)
    ]
    return next((one for one in began if one and _after_ready(observed, one)), None)


def _is_ray(container: Object) -> bool:
    """Not the submitter of SidecarMode, which ends when the job does."""
    return "submitter" not in text(container, "name")


def _workers_lost(observed: Observed) -> Iterator[Taken]:
    if gone := _killed(observed, "-worker-"):
        yield Taken(words="a worker was lost", evidence=(gone,))
    for pod in observed.pods or ():
        if label(pod, "ray.io/node-type") == "worker" and _began_anew(observed, pod):
            yield Taken(
                words=f"a worker was lost, and {name(pod)} came in its place",
                evidence=(f"{name(pod)} is younger than the cluster's first readiness",),
            )
    for said in observed.given_up:  # a network that is cut, of which no kubelet knows
        yield Taken(words="a worker was lost: it did not answer Ray any more", evidence=(said,))


def _killed(observed: Observed, kind: str) -> str:
    """A pod of that kind that was stopped before the job had ended."""
    for event in observed.events:
        about = text(event, "involvedObject", "name")
        if text(event, "reason") == "Killing" and kind in about:
            when = at(event)
            if when is not None and _in_time(observed, when):
                return f"{about} was stopped at {when:%H:%M:%S}"
    return ""
