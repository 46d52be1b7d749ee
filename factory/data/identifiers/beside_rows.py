"""What a file of rows holds besides them: comments, text between rows, names of columns.

It is published with the rows, so it is scanned with them, although `clean` never sees it.
"""

from collections.abc import Iterator
from typing import Any

from lxml import etree

from factory.data.formats.delimited import records
from factory.data.formats.markup import SAFE
from factory.data.formats.opened import Opened
from factory.data.identifiers.flatten import RowText

ARROW_SCHEMA = b"ARROW:schema"
"""Metadata of a Parquet file that repeat its columns in a binary form."""


def beside_rows(file: Opened) -> Iterator[RowText]:
    """Texts of a file that are in none of its rows.

    The file's rows have been read before: it can be parsed.
    """
    kind = file.pattern.format(file.inner)
    if kind == "xml":
        yield RowText("\n".join(_between(file)), 0)
    elif kind in ("csv", "tsv"):
        for _, names in records(file):
            yield RowText("\n".join(names), 0)
            return
    elif kind == "parquet":
        yield RowText("\n".join(_about(file)), 0)


def prologue(file: Opened) -> Iterator[RowText]:
    """What stands before the root of a document: comments, and declarations of its own."""
    if file.pattern.format(file.inner) != "xml":
        return
    for _, root in etree.iterparse(file.stream, events=("start",), **SAFE):
        whole = etree.tostring(root.getroottree(), encoding="unicode")
        before = whole.partition(f"<{root.tag}")[0] if isinstance(root.tag, str) else whole
        yield RowText(before, 0)
        return


def _between(file: Opened) -> list[str]:
    """Comments and instructions anywhere; text and attributes outside of the row elements."""
    parser = etree.XMLParser(
        target=_Between(file.pattern.element),  # pyright: ignore[reportArgumentType]  the stubs ask for bytes too
        **SAFE,
    )
    found: Any = etree.parse(file.stream, parser)
    return found


class _Between:
    """Collects while lxml parses; nothing of the document is kept besides."""

    def __init__(self, row: str | None) -> None:
        self._row = row
        self._open: list[str] = []
        self._inside = 0
        self._begun = False
        self._lines: list[str] = []

    def start(self, tag: str, attributes: Any) -> None:
        """An element begins. Where no row is named, the document is the row."""
        name = etree.QName(tag).localname
        self._begun = True
        self._open.append(name)
        self._inside += self._row is None or name == self._row
        if not self._inside:
            self._lines += [f"{label}: {value}" for label, value in attributes.items()]

    def end(self, tag: str) -> None:
        """An element ends."""
        name = self._open.pop()
        self._inside -= self._row is None or name == self._row

    def data(self, text: str) -> None:
        """Text, whose label is the element that it stands in."""
        if not self._inside and text.strip():
            self._lines.append(f"{self._open[-1]}: {text}")

    def comment(self, text: str) -> None:
        """A comment. Those before the root are in the prologue."""
        if self._begun:
            self._lines.append(text)

    def pi(self, target: str, data: str | None = None) -> None:
        """A processing instruction."""
        self._lines.append(f"{target}: {data or ''}")

    def close(self) -> list[str]:
        """What was found."""
        return self._lines


def _about(file: Opened) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = file.path if file.path is not None else pa.BufferReader(file.whole())
    with pq.ParquetFile(source) as table:
        yield from table.schema_arrow.names
        for key, value in (table.metadata.metadata or {}).items():
            if key != ARROW_SCHEMA:
                yield f"{key.decode(errors='replace')}: {value.decode(errors='replace')}"
