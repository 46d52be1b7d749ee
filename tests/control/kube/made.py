"""Objects as an API server holds them, with only the fields that are read."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from factory.control.kube.observed import Observed, Seen

NAME = "fy-1"
CLUSTER = "fy-1-abcde"
UID = "242e277d-8d64-4d6d-a4f0-16be4590c02c"
OTHER_UID = "d9c53c6a-8e60-4c16-981b-686000b01e99"
GROUP = f"pg-{NAME}-{UID}"

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    """A time before (or, negative, after) the moment of the look."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def rayjob(deployment: str = "Running", job: str = "RUNNING", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": NAME,
            "uid": UID,
            "creationTimestamp": at(240),
            "labels": {"kai.scheduler/queue": "training"},
        },
        "spec": {"submissionMode": "HTTPMode"},
        "status": {
            "jobDeploymentStatus": deployment,
            "jobStatus": job,
            "rayClusterName": CLUSTER,
            **status,
        },
    }


def raycluster(*, ready_before: float | None = 100, head: bool = True) -> dict[str, Any]:
    conditions = [{"type": "HeadPodReady", "status": str(head), "reason": "HeadPodNotFound"}]
    if ready_before is not None:
        conditions.append(
            {
                "type": "RayClusterProvisioned",
                "status": "True",
                "reason": "AllPodRunningAndReadyFirstTime",
                "lastTransitionTime": at(ready_before),
            }
        )
    return {
        "metadata": {
            "name": CLUSTER,
            "ownerReferences": [{"kind": "RayJob", "name": NAME, "uid": UID}],
        },
        "status": {"desiredWorkerReplicas": 2, "conditions": conditions},
    }


def pod(role: str = "worker", number: int = 0, **changes: Any) -> dict[str, Any]:
    """A pod that runs since before its cluster was ready; `changes` are fields of its status."""
    group = "headgroup" if role == "head" else "w"
    status = {
        "phase": "Running",
        "startTime": at(200),
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True"},
        ],
        "containerStatuses": [
            {"name": "ray", "image": "r/i@sha256:0", "state": {"running": {"startedAt": at(190)}}}
        ],
    }
    return {
        "metadata": {
            "name": pod_name(role, number),
            "creationTimestamp": at(230),
            "labels": {
                "ray.io/cluster": CLUSTER,
                "ray.io/node-type": role,
                "ray.io/group": group,
            },
            "annotations": {"pod-group-name": GROUP},
        },
        "spec": {
            "nodeName": f"node-{number}",
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "ray", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        },
        "status": {**status, **changes},
    }


def pod_name(role: str = "worker", number: int = 0) -> str:
    return f"{CLUSTER}-head-00000" if role == "head" else f"{CLUSTER}-w-worker-{number:05}"


def pending(role: str = "worker", number: int = 0, why: str = "") -> dict[str, Any]:
    """A pod without a place."""
    made = pod(role, number)
    del made["spec"]["nodeName"]
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    made["status"] = {"phase": "Pending", "conditions": [{**condition, "message": why}]}
    return made


def waiting(reason: str, message: str = "", **more: Any) -> list[dict[str, Any]]:
    """Statuses of a pod's containers, the one of which waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return [{"name": "ray", "image": "r/i@sha256:0", "state": state, **more}]


def gang() -> list[dict[str, Any]]:
    return [pod("head"), pod("worker", 1), pod("worker", 2)]


def pending_gang(why: str = "") -> list[dict[str, Any]]:
    return [pending("head", 0, why), pending("worker", 1, why), pending("worker", 2, why)]


def podgroup(*messages: str, allocated: bool = False, gpus: str = "24") -> dict[str, Any]:
    told = {
        "type": "UnschedulableOnNodePool",
        "status": "True",
        "reasons": [{"reason": "PodSchedulingErrors", "message": one} for one in messages],
    }
    resources: dict[str, Any] = {"requested": {"nvidia.com/gpu": gpus}}
    if allocated:
        resources["allocated"] = {"nvidia.com/gpu": gpus}
    return {
        "metadata": {"name": GROUP},
        "spec": {"minMember": 3, "queue": "training"},
        "status": {
            "resourcesStatus": resources,
            "schedulingConditions": [told] if messages else [],
        },
    }


def queue(
    name: str = "training", used: str = "12", quota: float = 16, limit: float = -1
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"resources": {"gpu": {"quota": quota, "limit": limit}}},
        "status": {"allocated": {"nvidia.com/gpu": used}},
    }


def event(reason: str, message: str, kind: str = "Pod", about: str = "", before: float = 30):
    return {
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "name": about or pod_name()},
        "firstTimestamp": at(before),
        "lastTimestamp": at(before),
    }


def evict(of: str | None = None, before: float = 30) -> dict[str, Any]:
    """KAI's event for one pod; without a pod, in words that no version has used so far."""
    named = f"Pod ray/{of or pod_name('head')} was preempted by workload ray/pg-big-{OTHER_UID}.\nx"
    return event("Evict", named, "PodGroup", GROUP, before)


def observed(
    job: dict[str, Any] | None = None,
    pods: list[dict[str, Any]] | None = None,
    *events: dict[str, Any],
    **more: Any,
) -> Observed:
    """One look; a cluster that was ready, if nothing else is said."""
    given = {"raycluster": raycluster(), "podgroup": podgroup(allocated=True), **more}
    return replace(
        Observed(name=NAME, now=NOW, rayjob=job, pods=pods, events=events, seen=Seen(existed=True)),
        **given,
    )
