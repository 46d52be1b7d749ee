"""Checkpoints of a run: complete or absent.

`checkpoints/iter_0000040` is one once `complete.json` lies in it. That file comes last, in one
step, and lists every other file with its size and sha256. What a crash left half written has none,
and is no checkpoint to anybody. One whose marker is damaged completes
nothing either, but was not left half written: it is kept for a person to look at. The trainer
writes checkpoints, `factory.training.resume` completes them.
"""

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field, JsonValue, ValidationError

from factory.namespace.durable import sync, write_new
from factory.namespace.failures import explained
from factory.namespace.integrity import Damage
from factory.namespace.manifest import FileEntry
from factory.namespace.run_files import contents, listed
from factory.namespace.runs import RunDirectory

CHECKPOINTS = "checkpoints"
MARKER = "complete.json"
SET_ASIDE = "damaged"
"""Directory beside the checkpoints for those that cannot be loaded."""

REMOVED = "removed"
"""Directory beside the checkpoints for those that are being removed."""

_PREFIX = "iter_"
_NAME = re.compile(_PREFIX + r"\d{7,}")
_PARALLEL_FILES = 8


class Marker(BaseModel, frozen=True, extra="forbid"):
    """`complete.json`: what a checkpoint holds, and which run may go on from it."""

    step: int = Field(ge=1, description="Optimizer steps finished.")
    attempt: int = Field(ge=1, description="Of the run that wrote it.")
    identity: dict[str, JsonValue] = Field(
        description="What must be equal for the data to continue exactly."
    )
    files: dict[str, FileEntry] = Field(description="By path relative to the checkpoint.")


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint."""

    path: Path
    marker: Marker

    @property
    def step(self) -> int:
        """Optimizer steps finished."""
        return self.marker.step

    def damage(self, names: Collection[str] | None = None) -> list[Damage]:
        """How its files, or those named, differ from the marker, by reading all of them."""
        chosen = sorted(self.marker.files if names is None else names)
        with ThreadPoolExecutor(_PARALLEL_FILES) as pool:
            found = pool.map(partial(_difference, self.path, self.marker), chosen)
            return [damage for damage in found if damage is not None]


def checkpoint_path(run: RunDirectory, step: int) -> Path:
    """Where the checkpoint of that step lies, complete or not."""
    return run.path / CHECKPOINTS / f"{_PREFIX}{step:07d}"


def complete_checkpoints(run: RunDirectory) -> list[Checkpoint]:
    """Every complete checkpoint, oldest first. A marker that is damaged completes nothing.

    Raises:
        NamespaceError: a marker cannot be read, so nobody knows whether it completes anything; or
            a checkpoint is a link. Whoever may write into a public run could else have it go on
            with private weights.
    """
    found = [_read(run, path) for path in _directories(run)]
    return sorted((one for one in found if isinstance(one, Checkpoint)), key=lambda one: one.step)


def incomplete_checkpoints(run: RunDirectory) -> list[Path]:
    """What was begun and never completed: without a marker. Nothing of another name is.

    Raises:
        NamespaceError: a marker cannot be read.
    """
    return [path for path in _directories(run) if _read(run, path) is None]


def damaged_markers(run: RunDirectory) -> dict[Path, Damage]:
    """Checkpoints whose marker is there and says nothing that holds, with what is wrong with it.

    Raises:
        NamespaceError: a marker cannot be read.
    """
    found = {path: _read(run, path) for path in _directories(run)}
    return {path: one for path, one in found.items() if isinstance(one, Damage)}


def measured(directory: Path, names: Collection[str]) -> dict[str, FileEntry]:
    """Size and hash of those files, each brought to the disk first."""
    with ThreadPoolExecutor(_PARALLEL_FILES) as pool:
        entries = pool.map(_entry, [directory / name for name in sorted(names)])
        return dict(zip(sorted(names), entries, strict=True))


def complete(directory: Path, marker: Marker) -> Checkpoint:
    """Make a checkpoint of a directory whose files are all on the disk.

    Raises:
        FileExistsError: it was completed before.
    """
    for folder in {directory / Path(name).parent for name in marker.files}:
        sync(folder)
    scratch = directory / f".{MARKER}.{marker.attempt}"
    scratch.unlink(missing_ok=True)
    write_new(scratch, (marker.model_dump_json(indent=1) + "\n").encode())
    try:
        os.link(scratch, directory / MARKER)
    finally:
        scratch.unlink()
    sync(directory)
    sync(directory.parent)
    return Checkpoint(directory, marker)


def set_aside(run: RunDirectory, path: Path, attempt: int) -> Path:
    """Move a checkpoint that cannot be loaded out of the way, for a person to look at."""
    target = run.directory(f"{CHECKPOINTS}/{SET_ASIDE}") / f"{path.name}.attempt-{attempt}"
    path.replace(target)
    sync(target.parent)
    return target


def remove(path: Path) -> None:
    """Remove a checkpoint, complete or not, and what an earlier removal has left.

    Its name goes first: somebody of an earlier attempt may still be writing into it, and finds
    nothing there.
    """
    removed = path.parent / REMOVED
    removed.mkdir(exist_ok=True)
    path.replace(removed / f"{path.name}-{uuid.uuid4().hex}")
    sync(path.parent)
    shutil.rmtree(removed, ignore_errors=True)


def files_below(directory: Path) -> list[str]:
    """Every file of a checkpoint but its marker, relative to it."""
    return sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith(f".{MARKER}") and path.name != MARKER
    )


def _directories(run: RunDirectory) -> list[Path]:
    """Those that a trainer has made; somebody's copy beside them has another name."""
    with explained(run.root, f"reading the checkpoints of {run}"):
        names = listed(run.path, CHECKPOINTS)
    found = [run.path / CHECKPOINTS / name for name in names if _NAME.fullmatch(name)]
    return [path for path in found if path.is_dir() or path.is_symlink()]


def _read(run: RunDirectory, path: Path) -> Checkpoint | Damage | None:
    with explained(run.root, f"reading the checkpoints of {run}"):
        try:
            data = contents(run.path, f"{CHECKPOINTS}/{path.name}/{MARKER}")
        except FileNotFoundError:
            return None
    try:
        marker = Marker.model_validate_json(data)
    except ValidationError:
        return Damage(MARKER, "is cut off or damaged")
    if path.name != f"{_PREFIX}{marker.step:07d}":
        return Damage(MARKER, f"is of step {marker.step}")
    return Checkpoint(path, marker)


def _entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
        return FileEntry(size=os.fstat(file.fileno()).st_size, sha256=digest)


def _difference(directory: Path, marker: Marker, name: str) -> Damage | None:
    expected: Mapping[str, FileEntry] = marker.files
    if name not in expected:
        return Damage(name, "is not in the checkpoint")
    try:
        found = _entry(directory / name)
    except OSError as error:
        return Damage(name, f"cannot be read ({error.strerror})")
    if found.size != expected[name].size:
        return Damage(name, f"has {found.size:,} bytes, not {expected[name].size:,}")
    if found.sha256 != expected[name].sha256:
        return Damage(name, "has other content than when it was completed")
    return None
