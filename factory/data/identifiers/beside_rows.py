"""What a file of rows holds besides them: comments, text between rows, a name given twice.

It is published with the rows, so it is scanned with them, although no reader of rows ever sees it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from factory.data.identifiers.flatten import RowText
from factory.data.pattern import Pattern

UNREADABLE = RowText("", 1)


def beside_rows(path: Path, pattern: Pattern) -> Iterator[tuple[int | None, RowText]]:
    """Texts of a file that are in none of its rows, with the number of the row that they are in.

    The file's rows have been read before: it can be parsed.
    """
    suffix = path.suffix.lower()
    if suffix in (".xml", ".nxml"):
        yield None, RowText("\n".join([_prologue(path), *_between(path, pattern.element)]), 0)
    elif suffix == ".jsonl":
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip() and _repeats(line):
                    yield number, UNREADABLE
    elif suffix == ".json" and _repeats(path.read_bytes()):
        yield None, UNREADABLE


def _prologue(path: Path) -> str:
    """What stands before the root element: comments, and declarations of the document's own."""
    with path.open("rb") as file:
        for _, root in etree.iterparse(
            file,
            events=("start",),
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
        ):
            whole = etree.tostring(root.getroottree(), encoding="unicode")
            return whole.partition(f"<{root.tag}")[0] if isinstance(root.tag, str) else whole
    return ""


def _between(path: Path, row: str | None) -> list[str]:
    """Comments and instructions anywhere; text and attributes outside of the row elements."""
    parser = etree.XMLParser(
        target=_Between(row),  # pyright: ignore[reportArgumentType]  the stubs ask for bytes too
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    found: Any = etree.parse(path, parser)
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


def _repeats(data: bytes) -> bool:
    """Whether an object has a name twice: whoever parses it sees the last value only."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        value = dict(pairs)
        found = found or len(value) < len(pairs)
        return value

    json.loads(data.decode("utf-8-sig"), object_pairs_hook=look)
    return found
