"""Reading: the rows of raw files, in the order of their paths and positions.

What a row is says the pattern, see `pattern`; each format is a module of `formats`. Memory is bound
by a row or a batch, not by the file. A file that cannot be parsed ends the step with its name and
position. A row whose text cannot be kept is marked with the reason, and the rows after it are read.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path

from factory.data.formats import archives, delimited, items, lines, markup, nested, parquet, whole
from factory.data.formats.beside import ArchiveBeside, read_beside
from factory.data.formats.compression import unpacked
from factory.data.formats.notes import Notes
from factory.data.formats.opened import Opened, opened
from factory.data.images import Images
from factory.data.pattern import Format, Pattern, chosen, stem
from factory.data.row import Beside, Row

__all__ = ["Notes", "files", "read", "rows", "wanted"]

_FORMATS: dict[Format, Callable[[Opened], Iterator[Row]]] = {
    "xml": markup.rows,
    "jsonl": lines.rows,
    "json": items.rows,
    "csv": delimited.rows,
    "tsv": delimited.rows,
    "parquet": parquet.rows,
    "text": whole.texts,
    "content": whole.contents,
}

TWINS = "__MACOSX"
"""Where archives made on a Mac keep attributes, in files named as those that they belong to."""


def read(
    root: Path,
    names: Iterable[str],
    pattern: Pattern,
    notes: Notes,
    images: Images | None = None,
) -> Iterator[Row]:
    """The rows of these files below `root`.

    Args:
        root: folder of the source's files.
        names: those to read, by their paths in it.
        pattern: what a row is.
        notes: gets what the step should record.
        images: what the dataset declares about images; without it, rows have none.

    Raises:
        BadFile: a file cannot be parsed.
    """
    source = _Source(root, pattern, notes, images)
    for name in names:
        row = None
        for row in source.rows(name):
            yield row
        if row is None:
            notes.without_rows(name)


def files(root: Path, name: str, pattern: Pattern, notes: Notes) -> Iterator[Opened]:
    """What is read of one file: itself, or those of its members that the pattern names.

    Each has to be read before the next one is asked for.

    Raises:
        BadFile: it is a damaged archive.
    """
    return _Source(root, pattern, notes, None).files(name)


def rows(file: Opened) -> Iterator[Row]:
    """The rows of an open file.

    Raises:
        BadFile: it cannot be parsed.
    """
    found = _FORMATS[file.pattern.format(file.inner)](file)
    path = file.rows.items
    return found if path is None else nested.expanded(found, file, path)


@dataclass(frozen=True)
class _Source:
    root: Path
    pattern: Pattern
    notes: Notes
    images: Images | None

    def rows(self, name: str) -> Iterator[Row]:
        if self.pattern.members is None and self.pattern.format(name) in ("frame", "tile"):
            return self.parts(name)
        return (row for file in self.files(name) for row in rows(file))

    def files(self, name: str) -> Iterator[Opened]:
        return self._members(name) if self.pattern.members is not None else self._file(name)

    def parts(self, name: str) -> Iterator[Row]:
        from factory.data.images.rows import rows  # not above: few datasets need what it needs

        element = self.pattern.element or ""
        if stem(name)[1] is None:
            yield from rows(self.root / name, name, element, self.images)
            return
        for file in self._file(name):
            yield from rows(file.whole(), name, element, self.images)

    def _file(self, name: str) -> Iterator[Opened]:
        path = self.root / name
        where = path if stem(name)[1] is None else None
        with opened(path) as packed, self._plain(packed, name) as stream:
            yield self._opened(name, stream, partial(read_beside, self.root, name), where)

    def _members(self, name: str) -> Iterator[Opened]:
        path, ratio = self.root / name, self.pattern.rows.max_ratio
        with ArchiveBeside(path, name, ratio) as beside:
            for member in archives.members(path, name, ratio):
                if wanted(member.name, self.pattern, self.notes):
                    full = f"{name}!{member.name}"
                    with self._plain(member.stream, full) as stream:
                        yield self._opened(full, stream, partial(beside.read, member.name))

    def _opened(
        self, name: str, stream: BufferedReader, opener: Beside, path: Path | None = None
    ) -> Opened:
        pixels = self.images.max_pixels if self.images is not None else None
        return Opened(name, stream, self.pattern, self.notes, opener, pixels, path)

    @contextmanager
    def _plain(self, packed: BufferedReader, name: str) -> Generator[BufferedReader]:
        """A stream with its compression taken off, if its name says that there is one."""
        suffix = stem(name)[1]
        if suffix is None:
            yield packed
            return
        with unpacked(packed, suffix, name, self.pattern.rows.max_ratio) as stream:
            yield stream


def wanted(member: str, pattern: Pattern, notes: Notes) -> bool:
    """Whether the pattern names a member; a Mac's twins have to be asked for by their name."""
    glob = pattern.members or ""
    if not chosen([member], glob):
        return False
    folder, base = member.split("/", maxsplit=1)[0], member.rpartition("/")[2]
    asked = glob.startswith(TWINS) or glob.rpartition("/")[2].startswith("._")
    if asked or not (folder == TWINS or base.startswith("._")):
        return True
    notes.passed_over[TWINS] += 1
    return False
