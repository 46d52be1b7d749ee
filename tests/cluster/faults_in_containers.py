"""All faults in real containers, and how each strikes.

Ray, KubeRay and the kubelets do what they do; nothing is played. Which is struck, a head or its
worker, is in the name of the fault, and so is when.
"""

import contextlib
from collections.abc import Callable

from tests.cluster.fault import Expected, Fault, at
from tests.cluster.faults_of_dagster import KILLED, killed_at
from tests.cluster.inside import Process, the_one
from tests.cluster.nodes import path_of
from tests.cluster.scenes_in_containers import Role, SceneInContainers

type Strike = Callable[[SceneInContainers], None]


def _is_driver(process: Process) -> bool:
    return list(process.command[-2:]) == ["-m", "factory.training"]


def _is_first(process: Process) -> bool:
    return process.number == 1


def _named(program: str) -> Callable[[Process], bool]:
    return lambda process: process.program == program


def _killed(role: Role, which: Callable[[Process], bool]) -> Strike:
    def strike(scene: SceneInContainers) -> None:
        the_one(scene.processes(role), which).kill()

    return strike


def _until_noticed(strike: Strike) -> Strike:
    """The driver may not go on before another attempt has taken its place: it might end well."""

    def noticed(scene: SceneInContainers) -> None:
        before = {job["metadata"]["name"] for job in scene.rayjobs()}
        strike(scene)
        with contextlib.suppress(AssertionError):  # what came of it instead is counted
            scene.until(lambda: {job["metadata"]["name"] for job in scene.rayjobs()} - before)

    return noticed


def _driver_killed(scene: SceneInContainers) -> None:
    scene.killed |= set(scene.said())
    _killed("head", _is_driver)(scene)


def _deleted(role: Role) -> Strike:
    """By somebody's hand."""

    def strike(scene: SceneInContainers) -> None:
        scene.admin.delete(path_of(scene.pod(role)))

    return strike


def _daemon_killed(role: Role, daemon: str) -> Strike:
    """On the node of that pod; the containers go on without it, and so does the driver."""

    def strike(scene: SceneInContainers) -> None:
        node = scene.node(role)
        struck = node.kubelet if daemon == "kubelet" else node.containerd
        struck.kill()
        scene.pause(1.0, 4.0)
        scene.go()
        scene.pause(1.0, 6.0)
        struck.start()

    return strike


def _cut_for_a_while(role: Role) -> Strike:
    """For less time than Ray takes to give a node up."""

    def strike(scene: SceneInContainers) -> None:
        pod = scene.pod(role)
        scene.set_network(pod, "down")
        scene.go()
        scene.pause(2.0, 6.0)
        scene.set_network(pod, "up")

    return strike


def _worker_cut_off(scene: SceneInContainers) -> None:
    """For good: no kubelet knows of it, only Ray."""
    scene.set_network(scene.pod("worker"), "down")


AS_EVER = Expected()
AGAIN = Expected(attempts=2)
NEW_HEAD = Expected(attempts=2, new_head=True)
BY_HAND = Expected(ends="FAILURE", words="SIGKILL")


def _beheading(strike: Strike) -> Strike:
    """What was printed on that head and never left it is lost with it."""

    def beheads(scene: SceneInContainers) -> None:
        scene.beheaded |= set(scene.said())
        strike(scene)

    return beheads


def _fault(
    kind: str, when: str, strike: Strike, expected: Expected = AS_EVER
) -> Fault[SceneInContainers]:
    if expected.new_head:
        strike = _beheading(strike)
    if expected.attempts > 1:
        strike = _until_noticed(strike)
    return Fault(kind, when, at(when, strike), expected)


def _restarts(daemon: str) -> list[Fault[SceneInContainers]]:
    roles: tuple[Role, ...] = ("head", "worker")
    return [
        _fault(f"{daemon} of the {role} restarted", when, _daemon_killed(role, daemon))
        for role in roles
        for when in ("starting", "running")
    ]


FAULTS: list[Fault[SceneInContainers]] = [
    _fault("driver killed", "running", _driver_killed, BY_HAND),
    _fault("raylet of the worker killed", "running", _killed("worker", _named("raylet")), AGAIN),
    _fault("GCS of the head killed", "running", _killed("head", _named("gcs_server")), NEW_HEAD),
    _fault("container of the head killed", "running", _killed("head", _is_first), NEW_HEAD),
    _fault("worker deleted", "starting", _deleted("worker")),
    _fault("worker deleted", "running", _deleted("worker"), AGAIN),
    _fault("head deleted", "starting", _deleted("head")),
    _fault("head deleted", "running", _deleted("head"), NEW_HEAD),
    *_restarts("kubelet"),
    *_restarts("containerd"),
    *(Fault(KILLED, when, killed_at(when)) for when in ("starting", "running", "after the driver")),
    _fault("network of the worker cut for a while", "running", _cut_for_a_while("worker")),
    _fault("network of the head cut for a while", "running", _cut_for_a_while("head")),
    _fault("network of the worker cut for good", "running", _worker_cut_off, AGAIN),
]
