"""A source made of a few files, and its rows."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from factory.data.pattern import Pattern, Rows
from factory.data.reader import Notes, read
from factory.data.row import Row


@dataclass
class Source:
    """Files in a folder, read by patterns."""

    root: Path
    notes: Notes = field(default_factory=Notes)

    def put(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def stream(self, rows: str | Rows) -> Iterator[Row]:
        pattern = Pattern.parse(rows)
        paths = [file for file in self.root.rglob("*") if file.is_file()]
        names = pattern.matching(file.relative_to(self.root).as_posix() for file in paths)
        return read(self.root, names, pattern, self.notes)

    def rows(self, rows: str | Rows) -> list[Row]:
        return list(self.stream(rows))


type MakeSource = Callable[..., Source]


@pytest.fixture
def make_source(tmp_path: Path) -> MakeSource:
    def make(files: Mapping[str, str | bytes]) -> Source:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        source = Source(folder)
        source.put(files)
        return source

    return make
