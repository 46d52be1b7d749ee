"""A factory that looks ten times as often as it does otherwise, with a Dagster of its own."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import dagster as dg
import pytest

from factory.control import follower
from factory.control.instance import ensure
from factory.control.kube import pace
from factory.settings import Settings

LOOK_SECONDS = 0.5


@contextlib.contextmanager
def hurried() -> Generator[None]:
    """Whoever follows a run in this process looks that often, until the end of the block."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pace, "LOOK_SECONDS", LOOK_SECONDS)
        patched.setattr(pace, "HURRY_SECONDS", 0.2)
        patched.setattr(follower, "CANCEL_POLL_SECONDS", 0.5)
        yield


@contextlib.contextmanager
def hurried_dagster(folder: Path) -> Generator[dg.DagsterInstance]:
    """The same, with the instance whose home is `home` in that folder."""
    home = {"DAGSTER_HOME": str(folder / "home"), "FACTORY_STATE": str(folder / "state")}
    with hurried(), ensure(Settings.from_environment(home)) as instance:
        yield instance
