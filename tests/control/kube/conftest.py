"""Recordings of real clusters, where this machine has them."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def recordings(shared_data: Path) -> Path:
    """Objects of KubeRay and KAI as a real API server held them; not part of the project."""
    folder = shared_data.parent / "telemetry" / "kai"
    if not folder.is_dir():
        pytest.skip(f"recordings of KubeRay and KAI are not on this machine: {folder}")
    return folder
