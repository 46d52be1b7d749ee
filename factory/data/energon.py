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
from pathlib import Path
from typing import Any

from factory.data.fetch.command import run
from factory.data.loss import FILE as LOSS
from factory.data.loss import Loss
from factory.data.progress import Say, Ticker
from factory.data.sample import Sample, canonical
from factory.errors import StepError

PARTS = ("train", "val", "test")
"""Names that Energon's loaders ask for."""

MAX_NAME_CHARACTERS = 90
"""A longer name would not fit into a plain tar header with its ending."""

META = ".nv-meta"


def entry_name(sample_id: str) -> str:
    """An id as the name of an entry: no dot, since Energon ends a name at the first one."""
    escaped = re.sub(rb"[^A-Za-z0-9_-]", lambda found: b"%%%02X" % found[0][0], sample_id.encode())
    name = escaped.decode()
    if len(name) <= MAX_NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(sample_id.encode()).hexdigest()[:32]
    return f"{name[: MAX_NAME_CHARACTERS - 33]}-{digest}"


def in_order(samples: Iterable[Sample]) -> list[Sample]:
    """The order of entries: by a hash of the id, so that neighbours have nothing in common."""
    return sorted(samples, key=lambda one: (hashlib.sha256(one.id.encode()).digest(), one.id))


def content_id(samples: Sequence[Sample], per_shard: int) -> str:
    """What the shards hold: the samples in their order, and where a shard ends."""
    digest = hashlib.sha256(f"{per_shard}\n".encode())
    for sample in samples:
        digest.update(canonical(sample.as_dict()) + b"\n")
    return digest.hexdigest()


def write_shards(
    samples: Sequence[Sample], folder: Path, per_shard: int, ticker: Ticker
) -> list[str]:
    """Write the tars; returns their names.

    Raises:
        StepError: two samples would get one name.
    """
    names: list[str] = []
    seen: set[str] = set()
    for start in range(0, len(samples), per_shard):
        names.append(f"shard-{start // per_shard:06d}.tar")
        with tarfile.open(folder / names[-1], "w", format=tarfile.USTAR_FORMAT) as tar:
            for sample in samples[start : start + per_shard]:
                name = entry_name(sample.id)
                if name in seen:
                    raise StepError(f"Two samples have the id of entry {name}; ids must differ.")
                seen.add(name)
                content = canonical(sample.as_dict())
                entry = tarfile.TarInfo(f"{name}.json")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
                ticker.tick()
    ticker.report()
    return names


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
            found = len(tar.getnames())
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
