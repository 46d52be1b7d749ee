"""A seeded choice of the faults in real containers; the table is made by the benchmark."""

import sys
from collections.abc import Iterator
from random import Random

import pytest

from factory.control import follower
from factory.control.instance import ensure
from factory.control.kube import cluster as kube_cluster
from factory.settings import Settings
from tests.cluster.fault import Fault
from tests.cluster.faults_in_containers import FAULTS
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
    home = {"DAGSTER_HOME": str(folder / "home"), "FACTORY_STATE": str(folder / "state")}
    with (
        pytest.MonkeyPatch.context() as patched,
        ensure(Settings.from_environment(home)) as instance,
        machinery(machines, instance, folder) as built,
    ):
        patched.setattr(kube_cluster, "LOOK_SECONDS", 0.5)
        patched.setattr(kube_cluster, "HURRY_SECONDS", 0.2)
        patched.setattr(follower, "CANCEL_POLL_SECONDS", 0.5)
        yield built


@pytest.mark.parametrize("fault", chosen(), ids=str)
def test_nothing_is_lost_doubled_left_or_wrong(
    made: Machinery, fault: Fault[SceneInContainers], capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():  # which were chosen is to be seen where CI runs
        sys.stdout.write(f"seed {SEED}: {fault}\n")
    with made.scene(Random(f"{SEED} {fault}")) as scene:
        found = played(fault, scene)
    assert found.clean, f"{found.end}: {found.counts()}\n{found.why}"
