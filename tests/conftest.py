"""What most tests need: a temporary namespace, and real inputs where this machine has them."""

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real, openly licensed inputs kept beside the checkout; they are not part of the project."""
    folder = Path(os.environ.get("FACTORY_SHARED_DATA", CHECKOUT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real inputs are not on this machine: {folder} (set FACTORY_SHARED_DATA)")
    return folder
