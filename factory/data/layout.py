"""Where things lie inside the directory of a version, and what its manifest says.

The directories themselves, and everything that starts with `_`, belong to `namespace`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factory.namespace import Manifest

RAW_FILES = "files"
"""Directory of a raw version that holds the source's files, so that no name of theirs collides."""

SAMPLES = "samples.parquet"
REJECTED = "rejected.parquet"
REMOVED = "removed.parquet"


def split_file(name: str) -> str:
    """File of a split version that holds the samples of one split."""
    return f"{name}.parquet"


def manifest_of(directory: Path) -> "Manifest":
    """The manifest of the version in that directory."""
    from factory.namespace import Manifest

    return Manifest.model_validate_json((directory / "_manifest.json").read_bytes())


def facts_of(directory: Path) -> dict[str, Any]:
    """What the step saw that made the version in that directory."""
    return dict(manifest_of(directory).facts)
