"""Clusters with authorities, keys and accounts of their own: west, east, and one of machines.

West and east are started once for all tests. A test works in a namespace of its own and takes its
nodes away again.
"""

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.cluster import builds, kai_definitions
from tests.cluster.access import Account, factory_account
from tests.cluster.builds import NoGo
from tests.cluster.compute_plane import NODES, STORAGE, ComputePlane, compute_plane
from tests.cluster.control_plane import ControlPlane, running
from tests.cluster.helm import Helm
from tests.cluster.kubelets import Machines, NoContainers, running_nodes
from tests.cluster.nodes import add_node, remove_node

LONGEST = ("test_faults_in_containers", "test_faults", "test_training_in_containers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first: two processes share them, and each file is whole."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def unavailable(reason: str) -> None:
    """A laptop may lack what a cluster needs; CI may not, or nothing would be tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}. These tests must run where CI=true.", pytrace=False)
    pytest.skip(reason)


def _running(name: str) -> Iterator[ControlPlane]:
    try:
        with running(name) as plane:
            yield plane
    except NoGo as missing:
        unavailable(str(missing))


@pytest.fixture(scope="session")
def west() -> Iterator[ControlPlane]:
    """The first cluster."""
    yield from _running("west")


@pytest.fixture(scope="session")
def east() -> Iterator[ControlPlane]:
    """The second cluster: nothing that proves anything in the first one counts here."""
    yield from _running("east")


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """A third cluster, of two nodes that run real containers; gone after the file that needs it."""
    try:
        with running_nodes("north") as started:
            yield started
    except (NoGo, NoContainers) as missing:
        unavailable(str(missing))


@pytest.fixture
def training(west: ControlPlane) -> Iterator[str]:
    """The name of a namespace of the test's own in the first cluster."""
    name = f"training-{uuid.uuid4().hex[:8]}"
    west.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    west.admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def account(west: ControlPlane, training: str) -> Account:
    """The factory's account in the test's namespace."""
    return factory_account(west, training)


@pytest.fixture
def gpu_nodes(west: ControlPlane) -> Iterator[list[str]]:
    """Two nodes of eight GPUs in the first cluster."""
    names = [f"node-{uuid.uuid4().hex[:6]}" for _ in range(2)]
    for name in names:
        add_node(west.admin, name)
    yield names
    for name in names:
        remove_node(west.admin, name)


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """helm, which installs nowhere yet."""
    try:
        return Helm(builds.program("helm"), tmp_path_factory.mktemp("helm"))
    except NoGo as missing:
        unavailable(str(missing))
        raise


@pytest.fixture(scope="module")
def installed(
    west: ControlPlane, helm: Helm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ComputePlane]:
    """A compute plane in the first cluster, which knows KAI's resources as long as that lasts."""
    folder = tmp_path_factory.mktemp("plane")
    with (
        kai_definitions.served(west.admin),
        compute_plane(west, helm, folder, nodes=NODES) as made,
    ):
        made.install(storage=STORAGE)
        made.take_token()
        made.wait_for_policy()
        yield made
