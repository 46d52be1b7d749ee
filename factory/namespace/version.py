"""A version: one published, unchanging directory of a key.

Resolve it once and keep it: `path` is the version's own directory, not the link, so a later
materialization or rollback does not disturb a reader.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

from factory.keys import Key
from factory.namespace.integrity import Damage, is_complete, verify
from factory.namespace.manifest import Manifest, read_manifest


@dataclass(frozen=True)
class Version:
    """One version of a key."""

    key: Key
    id: str
    path: Path

    @functools.cached_property
    def manifest(self) -> Manifest:
        """What the version states about itself, read once.

        Raises:
            DamagedVersion: the manifest is missing or unreadable.
        """
        return read_manifest(self.path, str(self))

    def is_complete(self) -> bool:
        """Whether every file is there with its size; no file is read."""
        return is_complete(self.path, self.manifest)

    def verify(self) -> list[Damage]:
        """Every difference from the manifest; reads all files."""
        return verify(self.path, str(self), (self.key.path, self.id))

    def __str__(self) -> str:
        return f"{self.key}@{self.id}"
