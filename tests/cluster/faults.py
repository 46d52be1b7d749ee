"""All faults of a cluster without kubelets and of the processes around it.

A fault is played on a scene from before its launch until the driver may go on to its end. When it
strikes is part of its name; how long it takes then, and how long it lasts, is drawn.
"""

from tests.cluster import faults_of_answers, faults_of_dagster, faults_of_objects
from tests.cluster.fault import Fault, everywhere, meanwhile
from tests.cluster.scenes import Scene


def _server_restarts(scene: Scene) -> None:
    scene.plane.server.kill()
    meanwhile(scene)
    scene.plane.server.start()
    scene.plane.wait_until_ready()


def _operator_restarts(scene: Scene) -> None:
    scene.plane.operator.kill()
    meanwhile(scene)
    scene.plane.operator.start()


def _refused(scene: Scene) -> None:
    scene.door.shut()
    try:
        meanwhile(scene)
    finally:
        scene.door.open()


FAULTS: list[Fault[Scene]] = [
    *faults_of_dagster.FAULTS,
    *everywhere("API server killed and restarted", _server_restarts),
    *everywhere("operator killed and restarted", _operator_restarts),
    *everywhere("connection refused", _refused),
    *faults_of_answers.FAULTS,
    *faults_of_objects.FAULTS,
]
