"""Where things lie inside the directory of a version, and what its manifest says.

The directories themselves, and everything that starts with `_`, belong to `namespace`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factory.namespace import Manifest

RAW_FILES = "files"
"""Directory of a raw version that holds the source's files, so that no name of theirs collides."""

SAMPLES = "samples"
REJECTED = "rejected"
REMOVED = "removed"
IMAGES = "images"
"""Each of these is a table: a directory of Parquet files, one per shard, see `table`."""


def split_table(name: str) -> str:
    """Table of a split version that holds the samples of one split."""
    return name


def manifest_of(directory: Path) -> "Manifest":
    """The manifest of the version in that directory."""
    from factory.namespace import Manifest

    return Manifest.model_validate_json((directory / "_manifest.json").read_bytes())


def facts_of(directory: Path) -> dict[str, Any]:
    """What the step saw that made the version in that directory."""
    return dict(manifest_of(directory).facts)
