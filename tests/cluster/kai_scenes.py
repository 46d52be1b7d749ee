"""What KAI does with the factory's gangs, played once and timed: for its tests and its benchmark.

Each scene begins and ends without runs. Times are seconds by one clock, that of whoever watches; a
look at the cluster takes about a tenth of one.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from factory.control.kube.states import State
from tests.cluster.api import eventually
from tests.cluster.gangs import Gangs, bound, staying

_PATIENCE_SECONDS = 60.0
HOLDS_SECONDS = 3.0
"""Ten of the scheduler's cycles."""


@dataclass
class Scene:
    """What was seen, and when."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    states: dict[str, State] = field(default_factory=dict[str, State])
    pods_placed_too_early: int = 0
    left: list[str] = field(default_factory=list[str])


class Watch:
    """Times from one moment on."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._began = time.monotonic()

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Note when it holds.

        Raises:
            TimeoutError: it never did.
        """
        if not eventually(holds, _PATIENCE_SECONDS):
            raise TimeoutError(f"{what}: not within {_PATIENCE_SECONDS:.0f} s")
        self._scene.seconds[what] = time.monotonic() - self._began


def waits_whole(gangs: Gangs) -> Scene:
    """A gang of three comes while another holds one of the two nodes, then that one ends."""
    scene = Scene()
    first = gangs.submit(workers=1)
    scene.states["first"] = gangs.reaches(first, "running")
    second = gangs.submit(workers=2)
    watch = Watch(scene)
    watch.until("says why", lambda: "short of" in gangs.state(second).reason)
    held = time.monotonic() + HOLDS_SECONDS
    while time.monotonic() < held:
        scene.pods_placed_too_early += len(bound(gangs.look(second).pods))
    scene.states["waits"] = gangs.state(second)
    watch = Watch(scene)
    with ThreadPoolExecutor(1) as client:
        removed = client.submit(gangs.remove, first)
        watch.until("has its place", lambda: len(bound(gangs.look(second).pods)) == 3)
        removed.result()
    scene.states["placed"] = gangs.reaches(second, "running")
    gangs.remove_all()
    return scene


def reclaims(gangs: Gangs) -> Scene:
    """A training wants both nodes, which a probe of a queue without quota holds."""
    return _takes(gangs, gangs.submit("probe"), lambda: gangs.submit("training"))


def preempts(gangs: Gangs) -> Scene:
    """A training of a higher priority wants the nodes of another in its queue."""
    return _takes(gangs, gangs.submit("training"), lambda: gangs.submit(priority_class="urgent"))


def _takes(gangs: Gangs, loser: str, submit: Callable[[], str]) -> Scene:
    scene = Scene()
    scene.states["loser ran"] = gangs.reaches(loser, "running")
    ran = staying(gangs.look(loser).pods)
    watch = Watch(scene)
    winner = submit()
    watch.until("told to end", lambda: not ran & staying(gangs.look(loser).pods))
    watch.until("known", lambda: gangs.state(loser).ended)
    scene.states["loser"] = gangs.state(loser)
    scene.states["winner waits"] = gangs.reaches(winner, "queued", 5)
    with ThreadPoolExecutor(1) as client:  # of the loser, which is another process
        removed = client.submit(gangs.remove, loser)
        watch.until("has its place", lambda: len(bound(gangs.look(winner).pods)) == 3)
        watch.until("runs", lambda: gangs.state(winner).phase == "running")
        removed.result()
    scene.states["winner"] = gangs.state(winner)
    scene.left = gangs.left(loser)
    gangs.remove_all()
    return scene


def goes_first(gangs: Gangs) -> Scene:
    """Two trainings wait for both nodes; the one of higher priority came later."""
    scene = Scene()
    holder = gangs.submit(priority_class="urgent")
    scene.states["holder ran"] = gangs.reaches(holder, "running")
    lower = gangs.submit()
    Watch(scene).until("lower waits", lambda: "short of" in gangs.state(lower).reason)
    higher = gangs.submit(priority_class="urgent")
    Watch(scene).until("higher waits", lambda: "short of" in gangs.state(higher).reason)
    gangs.remove(holder)
    scene.states["higher"] = gangs.reaches(higher, "running")
    scene.states["lower"] = gangs.state(lower)
    gangs.remove_all()
    return scene


def is_cancelled(gangs: Gangs) -> Scene:
    """A gang is deleted while it waits for nodes that another holds."""
    scene = Scene()
    holder = gangs.submit()
    gangs.reaches(holder, "running")
    waiting = gangs.submit()
    Watch(scene).until("says why", lambda: "short of" in gangs.state(waiting).reason)
    before = gangs.left(waiting)
    watch = Watch(scene)
    gangs.remove(waiting)
    watch.until("nothing is left", lambda: not gangs.left(waiting))
    scene.left = before
    scene.states["holder"] = gangs.state(holder)
    gangs.remove_all()
    return scene
