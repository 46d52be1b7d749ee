"""What a version holds, sample by sample, as plain values: from its tables, or from its shards.

Read without `Sample`, so that a version that an older release made can be compared as well. A kind
of content that a sample does not have is left out: a new kind in a newer release changes no sample.
"""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factory.data import layout
from factory.errors import StepError
from factory.namespace import Version

type Held = tuple[str, dict[str, Any]]
"""The split that a sample lies in, empty where there is one table, and the sample."""


def has_samples(version: Version) -> bool:
    """Whether a version holds samples, and not only files."""
    return bool(_tables(version) or _shards(version))


def held(version: Version) -> Iterator[Held]:
    """Every sample of a version, in the order in which they lie there.

    Raises:
        StepError: a table or a shard cannot be read.
    """
    try:
        for place, directory in _tables(version).items():
            for row in _rows(directory):
                yield place, row
        for shard in _shards(version):
            for row in _entries(shard):
                yield "", row
    except (PermissionError, FileNotFoundError):
        raise
    except (OSError, ValueError, tarfile.TarError) as error:
        raise StepError(
            f"{version} cannot be read ({type(error).__name__}), so it cannot be compared. "
            f"`factory verify {version.key} {version.id}` says what is damaged."
        ) from None


def _tables(version: Version) -> dict[str, Path]:
    whole = version.path / layout.SAMPLES
    if whole.is_dir():
        return {"": whole}
    rows = version.manifest.facts.get("rows")
    splits = rows if isinstance(rows, dict) else {}
    found = {name: version.path / layout.split_table(name) for name in splits}
    return {name: directory for name, directory in found.items() if directory.is_dir()}


def _shards(version: Version) -> list[Path]:
    return sorted(version.path.glob("shard-*.tar"))


def _rows(directory: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    from factory.data import table

    for path in table.files(directory):
        with pq.ParquetFile(path) as file:
            # One by one: their writer bounds how much text a row group holds.
            for number in range(file.num_row_groups):
                for row in file.read_row_group(number).to_pylist():
                    row["meta"] = dict(row.get("meta") or ())
                    yield _present(row)


def _entries(shard: Path) -> Iterator[dict[str, Any]]:
    with tarfile.open(shard) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.name.endswith(".json") else None
            if file is not None:
                yield _present(json.loads(file.read()))


def _present(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
