"""Follow: read the lines that the workers append to the run's directory, as they come."""

from collections.abc import Iterator
from pathlib import Path


class Tail:
    """Complete lines of a growing file, each given once. What is there already is skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = path.stat().st_size if path.exists() else 0

    def lines(self) -> Iterator[str]:
        """The lines that were completed since the last call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole, _, _ = data.rpartition(b"\n")
        if whole:
            self._offset += len(whole) + 1
            yield from whole.decode().split("\n")
