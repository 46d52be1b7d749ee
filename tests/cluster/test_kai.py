"""KAI's real scheduler with the factory's runs: who waits, who gives way, and what is said of it.

Where there is no KAI these are skipped, also in CI: its programs are not of this project.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import kai_scenes
from tests.cluster.builds import NoGo
from tests.cluster.conftest import unavailable
from tests.cluster.control_plane import ControlPlane
from tests.cluster.gangs import GRACE_SECONDS, Gangs, gangs
from tests.cluster.kai import NoKai, running_kai

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def kai() -> Iterator[ControlPlane]:
    """A cluster with KAI; gone after this file."""
    try:
        with running_kai("south") as plane:
            yield plane
    except NoKai as missing:
        pytest.skip(str(missing))
    except NoGo as missing:
        unavailable(str(missing))


@pytest.fixture
def runs(kai: ControlPlane, tmp_path: Path) -> Iterator[Gangs]:
    """Runs on two nodes of eight GPUs."""
    with gangs(kai, tmp_path) as made:
        yield made


def test_a_gang_waits_whole_and_says_why(runs: Gangs) -> None:
    scene = kai_scenes.waits_whole(runs)
    assert scene.states["first"].phase == "running"
    assert scene.pods_placed_too_early == 0
    waits = scene.states["waits"]
    assert (waits.phase, waits.verdict) == ("queued", None)
    assert waits.reason.startswith(
        "queue training, 8 of 16 GPUs in use; 1 of 3 pods fits, short of 8 GPUs; waiting "
    )
    assert scene.states["placed"].phase == "running"


def test_training_takes_the_place_of_a_probe(runs: Gangs) -> None:
    scene = kai_scenes.reclaims(runs)
    assert scene.states["loser ran"].phase == "running"
    loser = scene.states["loser"]
    assert loser.verdict == "evicted"
    assert "in favour of run-" in loser.reason
    assert scene.states["winner"].phase == "running"
    assert scene.seconds["told to end"] < 10
    assert GRACE_SECONDS - 1 < scene.seconds["has its place"] < 30
    assert scene.left == []


def test_a_training_of_higher_priority_takes_the_place_of_another(runs: Gangs) -> None:
    scene = kai_scenes.preempts(runs)
    assert scene.states["loser"].verdict == "evicted"
    assert scene.states["winner"].phase == "running"


def test_a_training_of_higher_priority_goes_first(runs: Gangs) -> None:
    scene = kai_scenes.goes_first(runs)
    assert scene.states["higher"].phase == "running"
    assert scene.states["lower"].phase == "queued"


def test_a_waiting_gang_that_is_cancelled_leaves_nothing(runs: Gangs) -> None:
    scene = kai_scenes.is_cancelled(runs)
    kinds = {one.partition("/")[0] for one in scene.left}
    assert {"rayjobs", "rayclusters", "pods", "podgroups", "secrets"} <= kinds
    assert scene.seconds["nothing is left"] < 30
    assert scene.states["holder"].phase == "running"
