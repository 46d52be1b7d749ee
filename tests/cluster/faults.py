"""Faults of a cluster and of Dagster's processes, each with what has to come of the run.

A fault is played on a scene from before its launch until the driver may go on to its end. When it
strikes is part of its name, or drawn. Faults of pods are told as the API server and a kubelet tell
of them; what Ray does then (a driver dies with its head, and fails without its worker) is played.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from tests.cluster import nodes
from tests.cluster.api import Object
from tests.cluster.gateway import creates, everything, reads, removes, says, times
from tests.cluster.scenes import Scene, kill
from tests.control.kube.a_server import Reply, Request

type Play = Callable[[Scene], None]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What has to come of a run."""

    ends: Literal["SUCCESS", "FAILURE", "CANCELED"] = "SUCCESS"
    attempts: int = 1
    words: str = ""
    """On the run's page."""


@dataclass(frozen=True)
class Fault:
    """One kind of fault at one moment."""

    kind: str
    when: str
    play: Play
    expected: Expected = Expected()

    def __str__(self) -> str:
        return f"{self.kind}, {self.when}"


# When.


def _queued(scene: Scene) -> None:
    scene.until(scene.submitted)


def _starting(scene: Scene) -> None:
    scene.until(scene.has_pods)


def _running(scene: Scene) -> None:
    scene.until(scene.speaks)


def _ended(scene: Scene) -> None:
    _running(scene)
    scene.go()
    scene.until(scene.has_ended)


MOMENTS: dict[str, Play] = {
    "queued": _queued,
    "starting": _starting,
    "running": _running,
    "after the driver": _ended,
}


def _at(moment: str, strike: Play) -> Play:
    def play(scene: Scene) -> None:
        scene.launch()
        MOMENTS[moment](scene)
        scene.pause(0.0, 0.6)
        strike(scene)
        scene.go()

    return play


def _everywhere(kind: str, strike: Play, expected: Expected = Expected()) -> list[Fault]:
    return [Fault(kind, moment, _at(moment, strike), expected) for moment in MOMENTS]


def _meanwhile(scene: Scene) -> None:
    """While it lasts, the driver goes on."""
    scene.pause(0.2, 2.0)
    scene.go()
    scene.pause(0.2, 2.0)


# Dagster's process is killed, and its run taken up.


def _taken_up(scene: Scene) -> None:
    scene.go()
    left = scene.runs()
    if left and left[0].is_finished:
        return  # it had ended before it was killed
    scene.launch(adopts=left[0].run_id if left else "")


def _killed_at(moment: str) -> Play:
    def play(scene: Scene) -> None:
        process = scene.launch_elsewhere()
        MOMENTS[moment](scene)
        scene.pause(0.0, 1.0)
        kill(process)
        _taken_up(scene)

    return play


def _killed_while_it_speaks(scene: Scene) -> None:
    process = scene.launch_elsewhere()
    _running(scene)
    scene.go()
    scene.pause(0.0, 0.4)
    kill(process)
    _taken_up(scene)


def _killed_whenever(scene: Scene) -> None:
    process = scene.launch_elsewhere()
    scene.go()
    scene.until(scene.runs)
    scene.pause(0.0, 8.0)
    kill(process)
    _taken_up(scene)


def _killed_by(which: Callable[[Request], bool], *, done: bool) -> Play:
    """Killed with a request under way, which the server has taken or not."""

    def play(scene: Scene) -> None:
        struck = threading.Event()

        def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
            if struck.is_set() or not which(request):
                return None
            if done:
                forward(request)
            kill(process)
            struck.set()
            return Reply(dropped=True)

        with scene.gateway.ruled(rule):
            process = scene.launch_elsewhere()
            scene.go()
            scene.until(struck.is_set)
        _taken_up(scene)

    return play


KILLED = "Dagster process killed"
_KILLED = [
    Fault(KILLED, "before the Secret", _killed_by(creates("secrets"), done=False)),
    Fault(KILLED, "between Secret and RayJob", _killed_by(creates("rayjobs"), done=False)),
    Fault(KILLED, "after the RayJob", _killed_by(creates("rayjobs"), done=True)),
    *(Fault(KILLED, moment, _killed_at(moment)) for moment in MOMENTS),
    Fault(KILLED, "while the driver speaks", _killed_while_it_speaks),
    Fault(KILLED, "before the deletion", _killed_by(removes("rayjobs"), done=False)),
    Fault(KILLED, "while removing", _killed_by(removes("rayjobs"), done=True)),
    Fault(KILLED, "whenever", _killed_whenever),
]


# The cluster's programs, and the way to them.


def _server_restarts(scene: Scene) -> None:
    scene.plane.server.kill()
    _meanwhile(scene)
    scene.plane.server.start()
    scene.plane.wait_until_ready()


def _operator_restarts(scene: Scene) -> None:
    scene.plane.operator.kill()
    _meanwhile(scene)
    scene.plane.operator.start()


def _refused(scene: Scene) -> None:
    scene.door.shut()
    try:
        _meanwhile(scene)
    finally:
        scene.door.open()


# What the server answers.


def _answers(reply: Reply, which: Callable[[Request], bool] = everything) -> Play:
    """For a while."""

    def strike(scene: Scene) -> None:
        with scene.gateway.ruled(times(1 << 30, which, reply)):
            _meanwhile(scene)

    return strike


def _lost_answer(kind: str) -> Play:
    """The server takes what is created, and the answer does not arrive."""

    def play(scene: Scene) -> None:
        lost: list[Request] = []

        def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
            if lost or not creates(kind)(request):
                return None
            forward(request)
            lost.append(request)
            return Reply(dropped=True)

        with scene.gateway.ruled(rule):
            scene.launch()
            scene.until(lambda: lost)
            _running(scene)
            scene.go()

    return play


def _not_seen_yet(scene: Scene) -> None:
    """What was created just now is not there yet for the next look."""
    unseen = times(1, lambda request: "/rayjobs/" in request.path, says(404, "NotFound"))
    empty = times(2, lambda request: "labelSelector" in request.path, Reply(200, {"items": []}))

    def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
        made = any(creates("rayjobs")(one) for one, _ in scene.gateway.answered)
        if not made or not reads(request):
            return None
        return unseen(request, forward) or empty(request, forward)

    with scene.gateway.ruled(rule):
        scene.launch()
        _running(scene)
        scene.go()


def _stale(scene: Scene) -> None:
    """One look and then another is answered as the one before it was."""
    older: dict[str, Reply] = {}

    def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
        if not reads(request):
            return None
        before = older.get(request.path)
        older[request.path] = new = forward(request)
        return before if before is not None and scene.random.random() < 0.5 else new

    with scene.gateway.ruled(rule):
        scene.launch()
        _running(scene)
        scene.go()
        scene.until(scene.is_complete)


# Its token.


def _token_expires(scene: Scene) -> None:
    scene.token.write_text(scene.account.signed_token(scene.random.choice([-60, 1])))
    _meanwhile(scene)
    scene.token.write_text(scene.account.token())


def _token_rotates(scene: Scene) -> None:
    """The old one counts no more; the new one is there a moment before, or after."""
    old, new = scene.token.read_text(), scene.account.token(seconds=3601)

    def rule(request: Request, _forward: Callable[[Request], Reply]) -> Reply | None:
        return says(401, "Unauthorized") if request.token == old else None

    late = scene.random.random() < 0.5
    if not late:
        scene.token.write_text(new)
    scene.gateway.rules.append(rule)  # until the end of the scene
    scene.pause(0.0, 1.0)
    scene.token.write_text(new)
    _meanwhile(scene)


# Its pods, and its objects.


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
        _driver_gets(scene, signal.SIGTERM if kind == "head" else signal.SIGUSR1)
        time.sleep(0.5)
        scene.stage.slow_deletion = False

    return strike


def _deleted(kind: str) -> Play:
    """By somebody's hand."""

    def strike(scene: Scene) -> None:
        pod = _pod(scene, kind)
        scene.stage.admin.delete(nodes.path_of(pod))
        _event(scene, pod, "Killing", f"Stopping container ray-{kind}")
        if kind == "worker":
            _driver_gets(scene, signal.SIGUSR1)

    return strike


def _rayjob_deleted(scene: Scene) -> None:
    for job in scene.stage.rayjobs():
        path = f"/apis/ray.io/v1/namespaces/{scene.stage.namespace}/rayjobs"
        scene.stage.admin.delete(f"{path}/{job['metadata']['name']}")


def _ttl(scene: Scene) -> None:
    """Its cluster goes as soon as KubeRay knows that the driver has ended."""
    scene.go()
    scene.until(scene.is_complete, seconds=60.0)
    path = f"/apis/ray.io/v1/namespaces/{scene.stage.namespace}/rayclusters"
    for cluster in scene.stage.admin.items(path):
        scene.stage.admin.delete(f"{path}/{cluster['metadata']['name']}")


# Cancelled.


type _Illness = Callable[[Scene], contextlib.AbstractContextManager[None]]


def _cancelled_at(moment: str, illness: _Illness) -> Play:
    def play(scene: Scene) -> None:
        scene.launch()
        MOMENTS[moment](scene)
        scene.pause(0.0, 0.6)
        with illness(scene):
            scene.instance.report_run_canceling(scene.runs()[0])
            scene.pause(1.0, 3.0)

    return play


@contextlib.contextmanager
def _well(_: Scene) -> Generator[None]:
    yield


@contextlib.contextmanager
def _ill(scene: Scene) -> Generator[None]:
    with scene.gateway.ruled(times(1 << 30, everything, says(503, "ServiceUnavailable"))):
        yield


AGAIN = Expected(attempts=2)
CANCELED = Expected(ends="CANCELED")
GONE = Expected(ends="FAILURE", words="its RayJob is gone")
BUSY = says(429, "TooManyRequests", Retry_After="1")

FAULTS: list[Fault] = [
    *_KILLED,
    *_everywhere("API server killed and restarted", _server_restarts),
    *_everywhere("operator killed and restarted", _operator_restarts),
    *_everywhere("connection refused", _refused),
    Fault("409: answer of the create lost", "RayJob", _lost_answer("rayjobs")),
    Fault("409: answer of the create lost", "Secret", _lost_answer("secrets")),
    *_everywhere("410", _answers(says(410, "Expired"), reads)),
    *_everywhere("429 with Retry-After", _answers(BUSY)),
    *_everywhere("503", _answers(says(503, "ServiceUnavailable"))),
    Fault("stale reads", "just created", _not_seen_yet),
    Fault("stale reads", "throughout", _stale),
    *_everywhere("token expired, then renewed", _token_expires),
    *_everywhere("token rotated", _token_rotates),
    Fault("head evicted by its node", "running", _at("running", _evicted("head")), AGAIN),
    Fault("worker evicted by its node", "running", _at("running", _evicted("worker")), AGAIN),
    Fault("head drained", "running", _at("running", _drained("head")), AGAIN),
    Fault("worker drained", "running", _at("running", _drained("worker")), AGAIN),
    Fault("head deleted", "running", _at("running", _deleted("head")), AGAIN),
    Fault("worker deleted", "running", _at("running", _deleted("worker")), AGAIN),
    Fault("RayJob deleted by hand", "queued", _at("queued", _rayjob_deleted), GONE),
    Fault("RayJob deleted by hand", "running", _at("running", _rayjob_deleted), GONE),
    Fault("TTL races the reader", "after the driver", _at("running", _ttl)),
    *(
        Fault("cancelled", moment, _cancelled_at(moment, _well), CANCELED)
        for moment in ("queued", "starting", "running")
    ),
    *(
        Fault("cancelled under 503", moment, _cancelled_at(moment, _ill), CANCELED)
        for moment in ("queued", "starting", "running")
    ),
]
