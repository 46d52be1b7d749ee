"""Energon: one split as a WebDataset that Megatron-Energon loads.

Entries lie in an order that depends on the ids alone, so the shards of the same samples are the
same bytes. The index is made by Energon's own `prepare`, in a process of its own: it imports torch
and changes how the process that calls it starts others. Reading samples back is the work of
`encoder`.

Every shard belongs to each of Energon's parts `train`, `val` and `test`: one directory holds one
split of ours, and whatever part a loader asks for, it gets that split.
"""

import hashlib
import io
import json
import re
import sqlite3
import sys
import tarfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.data.fetch.command import run
from factory.data.loss import FILE as LOSS
from factory.data.loss import Loss
from factory.data.progress import Say
from factory.errors import StepError

PARTS = ("train", "val", "test")
"""Names that Energon's loaders ask for."""

MAX_NAME_CHARACTERS = 78
"""A longer name would not fit into a plain tar header with the longest ending, an image's."""

META = ".nv-meta"


def entry_name(sample_id: str) -> str:
    """An id as the name of an entry: no dot, since Energon ends a name at the first one."""
    escaped = re.sub(rb"[^A-Za-z0-9_-]", lambda found: b"%%%02X" % found[0][0], sample_id.encode())
    name = escaped.decode()
    if len(name) <= MAX_NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(sample_id.encode()).hexdigest()[:32]
    return f"{name[: MAX_NAME_CHARACTERS - 33]}-{digest}"


def place(sample_id: str) -> str:
    """Where an entry stands among the others: by a hash, so neighbours have nothing in common."""
    return hashlib.sha256(sample_id.encode()).hexdigest()


def shard_name(number: int) -> str:
    """The file name of a shard."""
    return f"shard-{number:06d}.tar"


@dataclass(frozen=True, slots=True)
class Stored:
    """An image as an entry holds it."""

    sha256: str
    extension: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A sample as canonical JSON, and the images that it shows."""

    id: str
    content: bytes
    images: Sequence[Stored] = ()


def write_shard(path: Path, entries: Iterable[Entry]) -> str:
    """Write the tar of a shard; gives the hash of what it says, for `content_id`.

    An image lies beside its sample, as `<entry>.<16 digits of its hash>.<extension>`.

    Raises:
        StepError: two samples would get one name.
    """
    digest = hashlib.sha256()
    seen: set[str] = set()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            name = entry_name(entry.id)
            if name in seen:
                raise StepError(f"Two samples have the id of entry {name}; ids must differ.")
            seen.add(name)
            digest.update(entry.content + b"\n")
            _add(tar, f"{name}.json", entry.content)
            for image in entry.images:
                _add(tar, f"{name}.{image.sha256[:16]}.{image.extension}", image.data)
    return digest.hexdigest()


def content_id(shards: Iterable[str], per_shard: int, policy: Loss) -> str:
    """What there is: the hashes of the shards in order, how long one is, what carries loss."""
    lines = [f"{per_shard}", policy.to_json().decode().strip(), *shards]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def write_loss(folder: Path, policy: Loss) -> None:
    """Say beside the shards what of a sample carries loss."""
    (folder / LOSS).write_bytes(policy.to_json())


def prepare(folder: Path, shards: int, say: Say) -> None:
    """Let Energon index the shards.

    Raises:
        StepError: it did not.
    """
    command: list[str | Path] = [sys.executable, "-m", "megatron.energon.cli.main", "prepare"]
    command += [folder, "--non-interactive", "--no-progress", "--sample-type", "CrudeWebdataset"]
    command += ["--num-workers", str(min(4, shards))]
    for part in PARTS:
        command += ["--split-parts", f"{part}:.*"]
    status, errors = run(command, "Energon prepares its index", say)
    if status or not (folder / META / ".info.json").is_file():
        last = errors.splitlines()[-1] if errors else f"exit status {status}"
        raise StepError(f"Energon could not prepare {folder.name}: {last}")


def count(folder: Path) -> int:
    """Number of entries that Energon counted."""
    info: dict[str, Any] = json.loads((folder / META / ".info.json").read_bytes())
    return sum(info["shard_counts"].values())


def index_problems(folder: Path) -> list[str]:
    """How Energon's index differs from the shards; empty when a loader will find every entry."""
    info: dict[str, Any] = json.loads((folder / META / ".info.json").read_bytes())
    problems: list[str] = []
    total = 0
    for name, entries in info["shard_counts"].items():
        with tarfile.open(folder / name) as tar:
            found = sum(one.endswith(".json") for one in tar.getnames())
        total += found
        if found != entries:
            problems.append(f"{name} holds {found:,} entries, the index says {entries:,}")
        if not (folder / f"{name}.idx").is_file():
            problems.append(f"{name}.idx is missing")
    address = f"file:{(folder / META / 'index.sqlite').as_posix()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as index:
        indexed = index.execute("SELECT COUNT(*) FROM samples").fetchone()[0]
    if indexed != total:
        problems.append(f"index.sqlite names {indexed:,} entries, the shards hold {total:,}")
    return problems


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
