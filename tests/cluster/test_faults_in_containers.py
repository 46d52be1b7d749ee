"""A seeded choice of the faults in real containers; the table is made by the benchmark."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.cluster.fault import Fault
from tests.cluster.faults_in_containers import FAULTS
from tests.cluster.hurried import hurried_dagster
from tests.cluster.kubelets import Machines
from tests.cluster.reckoning import played
from tests.cluster.scenes_in_containers import Machinery, SceneInContainers, machinery

pytestmark = pytest.mark.cluster

SEED, CHOSEN = 6, 3


def chosen() -> list[Fault[SceneInContainers]]:
    """Of different kinds."""
    mixed = Random(SEED).sample(FAULTS, len(FAULTS))
    return list({fault.kind: fault for fault in mixed}.values())[:CHOSEN]


@pytest.fixture(scope="module")
def made(machines: Machines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machinery]:
    folder = tmp_path_factory.mktemp("faults")
    with hurried_dagster(folder) as instance, machinery(machines, instance, folder) as built:
        yield built


@pytest.mark.parametrize("fault", chosen(), ids=str)
def test_nothing_is_lost_doubled_left_or_wrong(
    made: Machinery, fault: Fault[SceneInContainers]
) -> None:
    with made.scene(Random(f"{SEED} {fault}")) as scene:
        found = played(fault, scene)
    assert found.clean, f"{found.end}: {found.counts()}\n{found.why}"
