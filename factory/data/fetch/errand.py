"""What a fetcher is sent with, and what it comes back with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from factory.data.progress import Say

if TYPE_CHECKING:
    from factory.keys import Key
    from factory.namespace import Version


@dataclass(frozen=True, kw_only=True)
class Errand:
    """The circumstances of one fetch: where to work, where to look first, whom to tell."""

    scratch: Path
    """A folder of this dataset's own. What an interrupted download left is still there."""

    mirror: Path | None
    """A local copy that stands in for the source, verified all the same."""

    drops: Path | None
    """Where partners deliver."""

    closed: tuple[Path, ...]
    """Where private data may lie: no public source is read from below these."""

    inputs: "Mapping[Key, Version]"
    say: Say


@dataclass(frozen=True, slots=True)
class Fetched:
    """A folder to read."""

    folder: Path
    partial: bool = False
    """Whether only some of what the source holds is there."""
