"""Dagster's process is killed, at every moment, and its run taken up; runs are cancelled."""

import contextlib
import threading
from collections.abc import Callable, Generator

from tests.cluster.fault import MOMENTS, Expected, Fault, Play, running
from tests.cluster.gateway import creates, everything, removes, says, times
from tests.cluster.scenes import Scene, kill
from tests.cluster.under_way import UnderWay
from tests.control.kube.a_server import Reply, Request


def _taken_up(scene: UnderWay) -> None:
    scene.go()
    left = scene.runs()
    if left and left[0].is_finished:
        return  # it had ended before it was killed
    scene.launch(adopts=left[0].run_id if left else "")


def killed_at(moment: str) -> Callable[[UnderWay], None]:
    """At that moment, and taken up by this process."""

    def play(scene: UnderWay) -> None:
        process = scene.launch_elsewhere()
        MOMENTS[moment](scene)
        scene.pause(0.0, 1.0)
        kill(process)
        _taken_up(scene)

    return play


def _killed_while_it_speaks(scene: Scene) -> None:
    process = scene.launch_elsewhere()
    running(scene)
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


KILLED = "Dagster process killed"
CANCELED = Expected(ends="CANCELED")

FAULTS: list[Fault[Scene]] = [
    Fault(KILLED, "before the Secret", _killed_by(creates("secrets"), done=False)),
    Fault(KILLED, "between Secret and RayJob", _killed_by(creates("rayjobs"), done=False)),
    Fault(KILLED, "after the RayJob", _killed_by(creates("rayjobs"), done=True)),
    *(Fault(KILLED, moment, killed_at(moment)) for moment in MOMENTS),
    Fault(KILLED, "while the driver speaks", _killed_while_it_speaks),
    Fault(KILLED, "before the deletion", _killed_by(removes("rayjobs"), done=False)),
    Fault(KILLED, "while removing", _killed_by(removes("rayjobs"), done=True)),
    Fault(KILLED, "whenever", _killed_whenever),
    *(
        Fault("cancelled", moment, _cancelled_at(moment, _well), CANCELED)
        for moment in ("queued", "starting", "running")
    ),
    *(
        Fault("cancelled under 503", moment, _cancelled_at(moment, _ill), CANCELED)
        for moment in ("queued", "starting", "running")
    ),
]
