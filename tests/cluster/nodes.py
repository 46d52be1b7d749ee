"""Nodes without kubelets, and the test in the place of a kubelet: it says how pods fare."""

from collections.abc import Mapping
from typing import Any

from tests.cluster.api import Api, Object

GPU = "nvidia.com/gpu"
SHAPE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}


def add_node(api: Api, name: str, shape: Mapping[str, str] = SHAPE) -> None:
    """A node that is ready and has what `shape` says.

    Raises:
        Refused: there is a node of that name.
    """
    labels = {
        "kubernetes.io/hostname": name,
        f"{GPU}.count": shape.get(GPU, "0"),
        f"{GPU}.product": "NVIDIA-H100-80GB-HBM3",
    }
    api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": dict(shape), "allocatable": dict(shape), "conditions": [ready]}
    api.patch(f"/api/v1/nodes/{name}/status", {"status": status})


def remove_node(api: Api, name: str) -> None:
    """Take a node away; what ran there is gone with it.

    Raises:
        Refused: the server did not do it.
    """
    api.delete(f"/api/v1/nodes/{name}")


def run(api: Api, pod: Object, ip: str = "10.0.0.1") -> Object:
    """All containers of a pod run and are ready.

    Raises:
        Refused: the pod is gone.
    """
    return _set(api, pod, "Running", {"running": {}}, ip=ip)


def wait(api: Api, pod: Object, reason: str, message: str = "") -> Object:
    """The containers cannot start, for instance for ImagePullBackOff.

    Raises:
        Refused: the pod is gone.
    """
    return _set(api, pod, "Pending", {"waiting": {"reason": reason, "message": message}})


def end(api: Api, pod: Object, exit_code: int, reason: str = "") -> Object:
    """The containers ended, for instance with 137 for OOMKilled.

    Raises:
        Refused: the pod is gone.
    """
    phase = "Failed" if exit_code else "Succeeded"
    named = reason or ("Error" if exit_code else "Completed")
    return _set(api, pod, phase, {"terminated": {"exitCode": exit_code, "reason": named}})


def evict(api: Api, pod: Object, message: str = "The node was low on resource: memory.") -> Object:
    """The node puts the pod out.

    Raises:
        Refused: the pod is gone.
    """
    status = {"phase": "Failed", "reason": "Evicted", "message": message}
    return api.patch(f"{path_of(pod)}/status", {"status": status})


def finish_deletion(api: Api, pod: Object) -> None:
    """What a kubelet does once the containers of a deleted pod have ended.

    Raises:
        Refused: the server did not do it.
    """
    api.delete(path_of(pod), grace_seconds=0)


def path_of(pod: Object) -> str:
    """Where the API server has this pod."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _set(
    api: Api, pod: Object, phase: str, state: Mapping[str, Any], ip: str | None = None
) -> Object:
    ready = phase == "Running"
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "restartCount": 0,
            "ready": ready,
            "started": ready,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
    conditions = [
        {"type": kind, "status": str(ready)}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    conditions[0]["status"] = "True"
    status = {"phase": phase, "conditions": conditions, "containerStatuses": containers}
    if ip is not None:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    return api.patch(f"{path_of(pod)}/status", {"status": status})
