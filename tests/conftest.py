"""What most tests need: a temporary namespace, and real inputs where this machine has them."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.mirrors import write_mirrors

settings.register_profile(
    "factory",
    deadline=None,  # machines are shared: how long an example takes says nothing
    derandomize=True,  # a failure comes again, here and in CI
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("factory")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test-cluster` looks in one folder only, for the others take long to be read."""
    for item in items:
        if item.get_closest_marker("cluster") and "cluster" not in item.path.parent.parts:
            raise pytest.UsageError(f"{item.nodeid} is marked cluster: move it to tests/cluster")


CHECKOUT = Path(__file__).resolve().parent.parent


def shared_folder() -> Path:
    """Where real, openly licensed inputs may be: they are not part of the project."""
    return Path(os.environ.get("FACTORY_SHARED_DATA", CHECKOUT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real inputs, beside the checkout."""
    folder = shared_folder()
    if not folder.is_dir():
        pytest.skip(f"real inputs are not on this machine: {folder} (set FACTORY_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def shared_mirrors(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What FACTORY_MIRRORS names: mirrors of the sources that the real inputs come from."""
    return write_mirrors(tmp_path_factory.mktemp("mirrors"), shared_data)
