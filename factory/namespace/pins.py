"""Pins: which versions a launch reads, from the moment that it is let through.

`<root>/<classification>/runs/.pins/<run id>.json`, beside the run directories. The run's own record
says the same for good, but is written only when its driver starts, and a launch may wait for a
cluster for days: a pin holds until then. `references` reads pins, `retention` respects them.

Whoever begins to need a version (a launch, a writer that reads it, a promotion) holds the lock of
its tree for that moment, and `retention` holds the locks of both trees while it decides and
renames. So a version is either needed in time and stays, or it is gone and whoever asks is refused.
"""

import uuid
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from factory.errors import NamespaceError
from factory.keys import Classification
from factory.namespace.durable import make_directories, replace_file
from factory.namespace.lock import Lock, LockTimes
from factory.namespace.runs import RUNS, RunDirectory
from factory.namespace.version import Version

LOCK = ".pinning"
PINS = ".pins"


class Pin(BaseModel, frozen=True, extra="forbid"):
    """What one launch reads, and for how long that stands without a run record."""

    versions: dict[str, str] = Field(description="Version id of every asset read, by key.")
    hours: float = Field(gt=0, description="How long it holds, from when the file was written.")


def needing(root: Path, classification: Classification, subject: str, times: LockTimes) -> Lock:
    """The lock to hold while a version begins to be needed in that tree."""
    return Lock(root / classification / LOCK, subject, times)


def directory(root: Path, classification: Classification) -> Path:
    """Where the pins of that tree lie."""
    return root / classification / RUNS / PINS


def write_pin(run: RunDirectory, versions: Iterable[Version], hold: timedelta) -> Path:
    """Record what a launch reads; the caller holds the lock of the tree.

    Raises:
        NamespaceError: a version is gone.
    """
    wanted = list(versions)
    refuse_gone(wanted)
    content = Pin(
        versions={version.key.path: version.id for version in wanted},
        hours=hold.total_seconds() / 3600,
    )
    folder = directory(run.root, run.classification)
    make_directories(folder, run.root)
    path = folder / f"{run.run_id}.json"
    scratch = folder / f".creating-{uuid.uuid4().hex}"
    replace_file(path, (content.model_dump_json(indent=2) + "\n").encode(), scratch)
    return path


def refuse_gone(versions: Iterable[Version]) -> None:
    """Check that versions which were found a moment ago are still there.

    Raises:
        NamespaceError: one is not, and who removed it.
    """
    for version in versions:
        if not version.path.is_dir():
            raise NamespaceError(
                f"{version} is gone: `factory gc` removed it a moment ago, or someone by hand. "
                f"Materialize {version.key} again, or take the version that is current now."
            )


def holds(path: Path, now: float) -> bool:
    """Whether the pin in that file still stands; one that cannot be read does, for ever."""
    try:
        pin = Pin.model_validate_json(path.read_bytes())
        return now - path.stat().st_mtime < pin.hours * 3600
    except FileNotFoundError:
        return False
    except ValidationError:
        return True
