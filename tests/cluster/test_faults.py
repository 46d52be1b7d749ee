"""A seeded choice of the faults; the whole table is made by the benchmark of that name."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.fault import Fault
from tests.cluster.faults import FAULTS
from tests.cluster.hurried import hurried_dagster
from tests.cluster.reckoning import played
from tests.cluster.scenes import Scene, Theatre, theatre

pytestmark = pytest.mark.cluster

SEED, CHOSEN = 6, 30


def chosen() -> list[Fault[Scene]]:
    """One of each kind, then more at random."""
    random = Random(SEED)
    mixed = random.sample(FAULTS, len(FAULTS))
    first = list({fault.kind: fault for fault in mixed}.values())
    rest = [fault for fault in mixed if fault not in first]
    return (first + rest)[:CHOSEN]


@pytest.fixture(scope="module")
def stages(west: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    folder = tmp_path_factory.mktemp("faults")
    with hurried_dagster(folder) as instance, theatre(west, instance, folder) as made:
        yield made


@pytest.mark.parametrize("fault", chosen(), ids=str)
def test_nothing_is_lost_doubled_left_or_wrong(stages: Theatre, fault: Fault[Scene]) -> None:
    with stages.scene(Random(f"{SEED} {fault}")) as scene:
        found = played(fault, scene)
    assert found.clean, f"{found.end}: {found.counts()}\n{found.why}"


def test_every_kind_is_among_those_chosen() -> None:
    assert {fault.kind for fault in chosen()} == {fault.kind for fault in FAULTS}
