"""Ways to damage a copy of a version: its tables, its manifest, its shards."""

import io
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factory.data import energon, table

type Damage = Callable[[Path], None]
type Rows = list[dict[str, Any]]


def rows_of(name: str, change: Callable[[Rows], Rows], part: int = 0) -> Damage:
    """Change the rows of one part of a table."""

    def damage(version: Path) -> None:
        path = table.file(version / name, part)
        content = pq.read_table(path)
        rows = change(content.to_pylist())
        pq.write_table(pa.Table.from_pylist(rows, schema=content.schema), path)

    return damage


def columns_of(name: str, change: Callable[[pa.Table], pa.Table], part: int = 0) -> Damage:
    """Change the columns of one part of a table."""

    def damage(version: Path) -> None:
        path = table.file(version / name, part)
        pq.write_table(change(pq.read_table(path)), path)

    return damage


def facts(**values: Any) -> Damage:
    """Change what the manifest says that the step saw."""
    return manifest(lambda found: found["facts"].update(values))


def manifest(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Change the manifest."""

    def damage(version: Path) -> None:
        path = version / "_manifest.json"
        found = json.loads(path.read_bytes())
        change(found)
        path.write_text(json.dumps(found))

    return damage


def content(name: str, change: Callable[[bytes], bytes]) -> Damage:
    """Change the bytes of a file."""

    def damage(version: Path) -> None:
        path = version / name
        path.write_bytes(change(path.read_bytes()))

    return damage


def gone(name: str) -> Damage:
    """Remove a file."""
    return lambda version: (version / name).unlink()


def copied(name: str, other: str) -> Damage:
    """Put a copy of one file in the place of another."""
    return lambda version: (version / other).write_bytes((version / name).read_bytes())  # type: ignore[func-returns-value]


def without_entry(*, index_too: bool) -> Damage:
    """Take the first sample out of the first shard, and out of Energon's index as well."""

    def damage(version: Path) -> None:
        path = version / energon.shard_name(0)
        with tarfile.open(path) as tar:
            entries = [(one, tar.extractfile(one)) for one in tar.getmembers()]
            held = [(one, file.read()) for one, file in entries[1:] if file is not None]
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for one, data in held:
                tar.addfile(one, io.BytesIO(data))
        if index_too:
            info = version / energon.META / ".info.json"
            said = json.loads(info.read_bytes())
            said["shard_counts"][path.name] -= 1
            info.write_text(json.dumps(said))
            unindexed(version)

    return damage


def members(change: Callable[[str, bytes], tuple[str, bytes] | None]) -> Damage:
    """Change the names and contents of what lies in the first shard, or leave some of it out."""

    def damage(version: Path) -> None:
        path = version / energon.shard_name(0)
        with tarfile.open(path) as tar:
            held = [(one.name, tar.extractfile(one)) for one in tar.getmembers()]
            changed = [change(name, file.read()) for name, file in held if file is not None]
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, data in filter(None, changed):
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))

    return damage


def unindexed(version: Path) -> None:
    """Take a sample out of Energon's table of samples."""
    with closing(sqlite3.connect(version / energon.META / "index.sqlite")) as index:
        index.execute("DELETE FROM samples WHERE rowid = (SELECT MIN(rowid) FROM samples)")
        index.commit()
