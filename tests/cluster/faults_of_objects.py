"""Pods and objects that go away, told as the API server and a kubelet tell of them.

What Ray does then is played: a driver dies with its head, and fails without its worker.
"""

import contextlib
import os
import signal
import time
from datetime import UTC, datetime

from tests.cluster import nodes
from tests.cluster.api import Object
from tests.cluster.fault import Expected, Fault, Play, at
from tests.cluster.scenes import Scene


def _pod(scene: Scene, kind: str) -> Object:
    return next(
        pod
        for pod in scene.stage.pods()
        if pod["metadata"]["labels"].get("ray.io/node-type") == kind
    )


def _event(scene: Scene, pod: Object, reason: str, message: str) -> None:
    """What a kubelet says of a pod."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    of = {name: pod["metadata"][name] for name in ("name", "namespace", "uid")}
    event = {
        "metadata": {"generateName": "told-", "namespace": of["namespace"]},
        "involvedObject": {"kind": "Pod", "apiVersion": "v1", **of},
        "reason": reason,
        "message": message,
        "type": "Normal",
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
    scene.stage.admin.create(f"/api/v1/namespaces/{of['namespace']}/events", event)


def _ray_notices(scene: Scene, pod: Object, kind: str) -> None:
    """A driver dies with its head at once; without its worker it fails."""
    if kind == "worker":
        _driver_gets(scene, signal.SIGUSR1)
        return
    scene.stage.heads.pop(pod["metadata"]["uid"], None)  # nothing is started there again
    _driver_gets(scene, signal.SIGKILL)
    scene.stage.told.jobs.clear()


def _driver_gets(scene: Scene, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(scene.stage.driver().pid, number)


def _evicted(kind: str) -> Play:
    """By its node, as a kubelet does it: the pod stays, and has failed."""

    def strike(scene: Scene) -> None:
        pod = _pod(scene, kind)
        message = "The node was low on resource: memory."
        nodes.evict(scene.stage.admin, pod, message)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "TerminationByKubelet",
            "message": message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        conditions = {"status": {"conditions": [*pod["status"]["conditions"], condition]}}
        scene.stage.admin.ask(
            "PATCH", f"{nodes.path_of(pod)}/status", conditions, "application/merge-patch+json"
        )
        _event(scene, pod, "Evicted", message)
        _ray_notices(scene, pod, kind)

    return strike


def _drained(kind: str) -> Play:
    """By the API server's own eviction."""

    def strike(scene: Scene) -> None:
        pod = _pod(scene, kind)
        scene.stage.slow_deletion = scene.random.random() < 0.5
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {name: pod["metadata"][name] for name in ("name", "namespace")},
        }
        scene.stage.admin.create(f"{nodes.path_of(pod)}/eviction", body)
        _event(scene, pod, "Killing", f"Stopping container ray-{kind}")
        if kind == "head":
            scene.beheaded.add(str(scene.stage.driver().pid))
        _driver_gets(scene, signal.SIGTERM if kind == "head" else signal.SIGUSR1)
        time.sleep(0.5)
        scene.stage.slow_deletion = False

    return strike


def _deleted(kind: str) -> Play:
    """By somebody's hand. A driver that went on before its head is gone might still end well."""

    def strike(scene: Scene) -> None:
        pod = _pod(scene, kind)
        driver = scene.stage.driver()
        scene.stage.admin.delete(nodes.path_of(pod))
        _event(scene, pod, "Killing", f"Stopping container ray-{kind}")
        if kind == "worker":
            _driver_gets(scene, signal.SIGUSR1)
        else:
            scene.until(lambda: driver.poll() is not None)

    return strike


def _rayjob_deleted(scene: Scene) -> None:
    """With all that belongs to it, before the driver could have done its work."""
    for job in scene.stage.rayjobs():
        path = f"/apis/ray.io/v1/namespaces/{scene.stage.namespace}/rayjobs"
        scene.stage.admin.delete(f"{path}/{job['metadata']['name']}")
    scene.until(lambda: not scene.rayjobs() and not scene.pods())


def _ttl(scene: Scene) -> None:
    """Its cluster goes as soon as KubeRay knows that the driver has ended."""
    scene.go()
    scene.until(scene.is_complete, seconds=60.0)
    path = f"/apis/ray.io/v1/namespaces/{scene.stage.namespace}/rayclusters"
    for cluster in scene.stage.admin.items(path):
        scene.stage.admin.delete(f"{path}/{cluster['metadata']['name']}")


AGAIN = Expected(attempts=2)
NEW_HEAD = Expected(attempts=2, new_head=True)
GONE = Expected(ends="FAILURE", words="its RayJob is gone")

FAULTS: list[Fault[Scene]] = [
    Fault("head evicted by its node", "running", at("running", _evicted("head")), NEW_HEAD),
    Fault("worker evicted by its node", "running", at("running", _evicted("worker")), AGAIN),
    Fault("head drained", "running", at("running", _drained("head")), NEW_HEAD),
    Fault("worker drained", "running", at("running", _drained("worker")), AGAIN),
    Fault("head deleted", "running", at("running", _deleted("head")), NEW_HEAD),
    Fault("worker deleted", "running", at("running", _deleted("worker")), AGAIN),
    Fault("RayJob deleted by hand", "queued", at("queued", _rayjob_deleted), GONE),
    Fault("RayJob deleted by hand", "running", at("running", _rayjob_deleted), GONE),
    Fault("TTL races the reader", "after the driver", at("running", _ttl)),
]
