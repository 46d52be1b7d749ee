"""Content ids: what a version holds, whatever the format, the order or the machine.

Rows are hashed one by one in their canonical form and the hashes are added up, so the id of a set
of rows does not depend on their order and can be made in parts. Two copies of a row count twice.
Files are hashed with their paths.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from factory.data.sample import canonical


@dataclass
class RowsHash:
    """The hash of a multiset of samples."""

    count: int = 0
    total: int = 0

    def add(self, sample: Mapping[str, Any]) -> None:
        """Count a sample in, given as JSON has it."""
        self.add_line(canonical(sample))

    def add_line(self, line: bytes) -> None:
        """Count a sample in, given in its canonical form."""
        digest = hashlib.sha256(line).digest()
        self.total = (self.total + int.from_bytes(digest)) % 2**256
        self.count += 1

    def merge(self, other: "RowsHash") -> None:
        """Count in what another one has counted."""
        self.total = (self.total + other.total) % 2**256
        self.count += other.count

    def facts(self) -> dict[str, Any]:
        """As JSON, for a part of a set that others are added to; `from_facts` reads it."""
        return {"count": self.count, "total": f"{self.total:064x}"}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The inverse of `facts`."""
        return cls(facts["count"], int(facts["total"], 16))

    def hexdigest(self) -> str:
        """The hash of what was added so far."""
        return hashlib.sha256(f"{self.count} {self.total:064x}".encode()).hexdigest()


def files_hash(root: Path, files: Iterable[str]) -> str:
    """The hash of files below a folder: of their paths and contents."""
    digest = hashlib.sha256()
    for name in sorted(files):
        with (root / name).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(canonical({"path": name, "sha256": content}) + b"\n")
    return digest.hexdigest()
