"""Finished work: a directory that is there with everything in it, or not at all.

It is written under another name and renamed when all of it is on the disk; the marker that says
what it holds is written last. A process may be killed at any moment: what it leaves is either
finished or swept away. `phases` decides what is to be finished.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from factory.data.shards import Shard
from factory.namespace import FileEntry
from factory.namespace.durable import sync, write_new

MARKER = "done.json"

type Facts = Mapping[str, Any]
type Fill = Callable[[Path], Facts]
"""Writes files into a directory and says what it saw, in JSON's terms."""

_THERE = frozenset({errno.ENOTEMPTY, errno.EEXIST})


@dataclass(frozen=True)
class Finished:
    """What became of a shard."""

    folder: Path
    files: Mapping[str, FileEntry]
    facts: dict[str, Any]

    def file(self, name: str) -> Path:
        """One of its files."""
        return self.folder / name


def finish(folder: Path, shard: Shard, fill: Fill) -> None:
    """Let `fill` write into a directory, and make it the finished one."""
    draft = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    draft.mkdir()
    try:
        facts = dict(fill(draft))
        files = {path.name: _sealed(path) for path in sorted(draft.iterdir())}
        marker = {
            "shard": asdict(shard),
            "files": {name: entry.model_dump() for name, entry in files.items()},
            "facts": facts,
        }
        write_new(draft / MARKER, json.dumps(marker).encode())
        sync(draft)
        if folder.exists() and found(folder, shard) is None:
            shutil.rmtree(folder)
        _put(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def found(folder: Path, shard: Shard, *, verify: bool = True) -> Finished | None:
    """The finished work of that shard; none where it is missing, damaged or of another shard."""
    try:
        marker: dict[str, Any] = json.loads((folder / MARKER).read_bytes())
        files = {name: FileEntry(**entry) for name, entry in marker["files"].items()}
        same = marker["shard"] == json.loads(json.dumps(asdict(shard)))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not same or (verify and not _intact(folder, files)):
        return None
    return Finished(folder, files, marker["facts"])


def _put(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError as error:
        if error.errno not in _THERE:
            raise  # else a twin of this task was faster, with the same result
    sync(folder.parent)


def _intact(folder: Path, files: Mapping[str, FileEntry]) -> bool:
    if {path.name for path in folder.iterdir()} != {*files, MARKER}:
        return False
    return all(_entry(folder / name) == entry for name, entry in files.items())


def _sealed(path: Path) -> FileEntry:
    entry = _entry(path)
    sync(path)
    return entry


def _entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileEntry(size=os.fstat(file.fileno()).st_size, sha256=digest)


def sweep(parent: Path) -> None:
    """Remove what killed processes began and did not finish."""
    for draft in parent.glob(".*"):
        with contextlib.suppress(NotADirectoryError):
            shutil.rmtree(draft, ignore_errors=True)
