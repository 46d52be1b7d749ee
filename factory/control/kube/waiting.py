"""Why an attempt does not run yet, in words for the run's page.

    queue training, 12 of 16 GPUs in use; 1 of 3 pods fits, short of 8 GPUs; waiting 4 min

The words come from KAI's PodGroup and Queue, from the pods' conditions where another scheduler
places them, and from events where KubeRay could not even make the pods.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from factory.control.kube.fields import (
    GPU,
    Object,
    amount,
    at,
    condition,
    count,
    is_leaving,
    label,
    mapping,
    moment,
    name,
    objects,
    short,
    text,
)
from factory.control.kube.observed import Observed
from factory.control.kube.reasons import containers, delays_of_a_start, troubles
from factory.control.kube.shortage import GPUS, fitting, shortage

QUEUE = "kai.scheduler/queue"
KAI = "kai-scheduler"

_NEVER = datetime.min.replace(tzinfo=UTC)

TAKEN_UP = timedelta(minutes=1)
"""KubeRay's operator looks at a new RayJob within seconds."""

_REFUSED = re.compile(r"FailedToCreate\w*Pod|FailedCreate")


def why_it_waits(observed: Observed, queues: Sequence[Object] = ()) -> str:
    """Why the attempt has no place yet, and for how long it has been waiting."""
    parts = [
        _queue(observed, queues),
        _unmade(observed) or _place(observed, queues),
        _waited(observed),
    ]
    return "; ".join(part for part in parts if part)


def why_it_starts(observed: Observed) -> str:
    """What an attempt that has its place is still missing."""
    pods = list(observed.pods or ())
    running = sum(_is_ready(pod) for pod in pods)
    parts = [f"{running} of {max(len(pods), _gang(observed))} pods are ready"] if pods else []
    if observed.deployment_status == "Running":
        parts.append("the cluster is there, and its driver is being started")
    amiss = [trouble.words for trouble in troubles(observed)] or delays_of_a_start(observed)
    parts += amiss[:1]
    if len(parts) < 2 and (pulling := _pulling(observed)):
        parts.append(f"{pulling} pulls its image")
    return "; ".join(["starting", *parts])


def has_place(observed: Observed) -> bool:
    """Whether every pod of the gang is bound to a node."""
    pods = observed.pods
    if pods is None:
        return _allocated(observed.podgroup)
    return 0 < len(pods) >= _gang(observed) and all(text(pod, "spec", "nodeName") for pod in pods)


def queue_of(observed: Observed) -> str:
    """The name of KAI's queue that the attempt waits in; empty without KAI."""
    return text(observed.podgroup, "spec", "queue") or label(observed.rayjob, QUEUE)


def _queue(observed: Observed, queues: Sequence[Object]) -> str:
    of = queue_of(observed)
    if not of:
        return ""
    queue = next((one for one in queues if name(one) == of), None)
    if queue is None:
        return f"queue {of}, which this cluster does not have" if queues else f"queue {of}"
    used, most = _in_use(queue), _most(queue)
    if most is None:
        return f"queue {of}, {used:g} GPUs in use"
    return f"queue {of}, {used:g} of {most:g} GPUs in use"


def _in_use(queue: Object) -> float:
    allocated = mapping(queue, "status", "allocated")
    return amount(allocated, GPU) or amount(allocated, "gpu") or 0.0


def _most(queue: Object) -> float | None:
    """What the queue may have: its quota, or its limit where it lives on what others leave."""
    gpu = mapping(queue, "spec", "resources", "gpu")
    quota, limit = amount(gpu, "quota") or 0.0, amount(gpu, "limit")
    most = quota if quota > 0 else limit
    return most if most is not None and most >= 0 and quota >= 0 else None


def _unmade(observed: Observed) -> str:
    """What keeps KubeRay from making pods."""
    if observed.rayjob is None:
        return "the API server does not show its RayJob yet"
    if observed.deployment_status in ("Suspended", "Suspending"):
        return "it is suspended: somebody has set `suspend` on its RayJob"
    if not observed.deployment_status:
        return _not_taken_up(observed)
    if refused := _refused(observed.events):
        return f"its pods cannot be made: {refused}"
    missing = _gang(observed) - len(observed.pods or ())
    if observed.pods is not None and missing > 0:
        return f"KubeRay has still to make {missing} of {_gang(observed)} pods"
    return ""


def _not_taken_up(observed: Observed) -> str:
    made = moment(observed.rayjob, "metadata", "creationTimestamp")
    if made is None or observed.now - made < TAKEN_UP:
        return "KubeRay has not taken it up yet"
    return (
        "KubeRay has not taken it up: its operator does not run, does not watch this namespace, or "
        "refuses the job for its scheduler, which only the operator's log says"
    )


def _refused(events: Sequence[Object]) -> str:
    """Why a pod could not be made, unless one was made after that."""
    told = [
        (when, event)
        for event in events
        if (when := at(event)) is not None
        and text(event, "involvedObject", "kind") in ("RayJob", "RayCluster")
        and (text(event, "reason").startswith("Created") or _REFUSED.match(text(event, "reason")))
    ]
    newest = max(told, key=lambda one: one[0], default=None)
    if newest is None or text(newest[1], "reason").startswith("Created"):
        return ""
    return short(text(newest[1], "message"))


def _place(observed: Observed, queues: Sequence[Object]) -> str:
    """What keeps the scheduler from placing the pods."""
    placed = [pod for pod in observed.pods or () if text(pod, "spec", "nodeName")]
    if being_cleared := _being_cleared(observed):
        return f"its place on {being_cleared} is being cleared: the pods there are still stopping"
    said = _said(observed)
    total = _gang(observed)
    if not said:
        if observed.podgroup is None and _is_kais(observed):
            return "KAI has not made a gang of its pods yet"
        return f"{len(placed)} of {total} pods have a place" if total else ""
    fits = max(len(placed), fitting(said))
    lacking = _lacking(observed, queues, said, max(0, total - fits))
    if not lacking:
        return short(said)
    return f"{fits} of {total} pods {'fits' if fits == 1 else 'fit'}, short of {lacking}"


def _being_cleared(observed: Observed) -> str:
    """The nodes that KAI keeps for the pods until those that run there have stopped."""
    nodes: set[str] = set()
    for pod in observed.pods or ():
        if text(pod, "spec", "nodeName"):
            continue
        told = [
            (when, event)
            for event in observed.events
            if text(event, "involvedObject", "name") == name(pod)
            and text(event, "reason") in ("Pipelined", "Unschedulable")
            and (when := at(event)) is not None
        ]
        newest = max(told, key=lambda one: one[0], default=None)
        if newest is None or text(newest[1], "reason") != "Pipelined":
            return ""
        nodes.add(text(newest[1], "message").rpartition(" node ")[2] or "its node")
    return ", ".join(sorted(nodes))


def _said(observed: Observed) -> str:
    """The scheduler's own words, KAI's on the whole gang before those on a single pod."""
    for told in objects(observed.podgroup, "status", "schedulingConditions"):
        if text(told, "status") == "True":
            reasons = [text(one, "message") for one in objects(told, "reasons")]
            return "; ".join(one for one in reasons if one) or text(told, "message")
    for pod in observed.pods or ():
        told = condition(pod, "PodScheduled")
        if text(told, "status") == "False" and text(told, "message"):
            return text(told, "message")
    return ""


def _lacking(observed: Observed, queues: Sequence[Object], said: str, unfit: int) -> str:
    """What there is too little of; GPUs with their number, where it can be known."""
    if (what := shortage(said)) != GPUS:
        return what
    each = max((_gpus(pod) for pod in observed.pods or ()), default=0.0)
    queue = next((one for one in queues if name(one) == queue_of(observed)), None)
    most = _most(queue) if queue is not None else None
    if queue is not None and most is not None:
        missing = _requested(observed) - max(0.0, most - _in_use(queue))
        missing = min(missing, unfit * each) if each else missing
        if missing > 0:
            return f"{missing:g} {GPUS}"
    return f"{GPUS} ({each:g} for each pod)" if each else GPUS


def _requested(observed: Observed) -> float:
    told = amount(observed.podgroup, "status", "resourcesStatus", "requested", GPU)
    return told if told is not None else sum(_gpus(pod) for pod in observed.pods or ())


def _allocated(podgroup: Object | None) -> bool:
    resources = mapping(podgroup, "status", "resourcesStatus")
    return bool(resources.get("allocated")) and resources["allocated"] == resources.get("requested")


def _gpus(pod: Object) -> float:
    limits = (mapping(one, "resources", "limits") for one in objects(pod, "spec", "containers"))
    return sum(amount(one, GPU) or 0.0 for one in limits)


def _gang(observed: Observed) -> int:
    """How many pods have to be placed together."""
    workers = count(observed.raycluster, "status", "desiredWorkerReplicas")
    made = len(observed.pods or ())
    return count(observed.podgroup, "spec", "minMember") or (1 + workers if workers else made)


def _is_kais(observed: Observed) -> bool:
    return any(text(pod, "spec", "schedulerName") == KAI for pod in observed.pods or ())


def _is_ready(pod: Object) -> bool:
    return text(condition(pod, "Ready"), "status") == "True" and not is_leaving(pod)


def _pulling(observed: Observed) -> str:
    """A pod that is fetching its image: its newest event says so."""
    for pod in observed.pods or ():
        told = [one for one in observed.events if text(one, "involvedObject", "name") == name(pod)]
        newest = max(told, key=lambda one: at(one) or _NEVER, default=None)
        waits = any(mapping(one, "state", "waiting") for one in containers(pod))
        if newest is not None and waits and text(newest, "reason") == "Pulling":
            return name(pod)
    return ""


def _waited(observed: Observed) -> str:
    made = moment(observed.rayjob, "metadata", "creationTimestamp")
    return f"waiting {lasting(observed.now - made)}" if made else ""


def lasting(time: timedelta) -> str:
    """A duration in the unit that a person would use."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"
