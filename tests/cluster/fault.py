"""A fault: its kind, when it strikes, how it is played, and what has to come of the run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.cluster.scenes import Scene
from tests.cluster.under_way import UnderWay

type Play = Callable[[Scene], None]
"""On a stage."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What has to come of a run."""

    ends: Literal["SUCCESS", "FAILURE", "CANCELED"] = "SUCCESS"
    attempts: int = 1
    words: str = ""
    """On the run's page."""
    new_head: bool = False
    """KubeRay makes a new head at once, and may start the driver there before anybody looks."""


@dataclass(frozen=True)
class Fault[S: UnderWay]:
    """One kind of fault at one moment."""

    kind: str
    when: str
    play: Callable[[S], None]
    expected: Expected = Expected()

    def __str__(self) -> str:
        return f"{self.kind}, {self.when}"


def _queued(scene: UnderWay) -> None:
    scene.until(scene.submitted)


def _starting(scene: UnderWay) -> None:
    scene.until(scene.has_pods)


def running(scene: UnderWay) -> None:
    """The driver has said all that it may say before it goes on."""
    scene.until(scene.speaks)


def _ended(scene: UnderWay) -> None:
    running(scene)
    scene.go()
    scene.until(scene.has_ended)


MOMENTS: dict[str, Callable[[UnderWay], None]] = {
    "queued": _queued,
    "starting": _starting,
    "running": running,
    "after the driver": _ended,
}


def at[S: UnderWay](moment: str, strike: Callable[[S], None]) -> Callable[[S], None]:
    """The launch up to that moment, then the fault."""

    def play(scene: S) -> None:
        scene.launch()
        MOMENTS[moment](scene)
        scene.pause(0.0, 0.6)
        strike(scene)
        scene.go()

    return play


def everywhere(kind: str, strike: Play, expected: Expected = Expected()) -> list[Fault[Scene]]:
    """The same fault at each moment."""
    return [Fault(kind, moment, at(moment, strike), expected) for moment in MOMENTS]


def meanwhile(scene: UnderWay) -> None:
    """While it lasts, the driver goes on."""
    scene.pause(0.2, 2.0)
    scene.go()
    scene.pause(0.2, 2.0)
