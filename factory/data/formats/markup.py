"""Markup: XML documents, and the elements of documents that may be larger than the memory.

The document says its encoding by itself. External entities and document types are never fetched,
and a document that uses entities of its own is refused, since expanding them can fill the memory.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lxml import etree

from factory.data.formats.errorpage import refuse_page
from factory.data.formats.notes import UTF_8
from factory.data.formats.opened import Opened
from factory.data.row import Row
from factory.errors import BadFile

if TYPE_CHECKING:
    from factory.data.row import Element

SAFE: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
}
"""How any document is parsed that comes from elsewhere."""


def rows(file: Opened) -> Iterator[Row]:
    """The document, or its elements of the tag that the pattern names."""
    if file.rows.format is None:  # a page that is declared to be XML may be what is wanted
        refuse_page(file.stream, file.name, "XML")
    try:
        if file.pattern.element is None:
            yield _document(file)
        else:
            yield from _elements(file, file.pattern.element)
    except etree.XMLSyntaxError as error:
        raise _bad(file.name, error) from None


def _document(file: Opened) -> Row:
    options: dict[str, Any] = SAFE | {"encoding": file.rows.encoding}
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, **options)
    root = etree.parse(file.stream, parser).getroot()
    _refuse_entities(root, file.name)
    _note(file, root)
    return file.row(None, xml=root)


def _elements(file: Opened, tag: str) -> Iterator[Row]:
    """One row per element, emptying each afterwards."""
    position = 0
    open_positions: list[int] = []
    options: dict[str, Any] = SAFE | {"encoding": file.rows.encoding}
    events = etree.iterparse(
        file.stream,
        events=("start", "end"),
        tag=f"{{*}}{tag}",
        remove_comments=True,
        remove_pis=True,
        **options,
    )
    for event, element in events:
        if event == "start":
            position += 1
            open_positions.append(position)
            continue
        _refuse_entities(element, file.name)
        yield file.row(open_positions.pop(), xml=element)
        if not open_positions:
            _empty(element)
    _note(file, events.root)


def _empty(element: "Element") -> None:
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _note(file: Opened, root: "Element") -> None:
    encoding = (file.rows.encoding or root.getroottree().docinfo.encoding or UTF_8).lower()
    how = "by its declaration" if file.rows.encoding is None else "declared"
    file.notes.encoding(file.name, encoding, how)


def _refuse_entities(element: "Element", name: str) -> None:
    entity = next(element.iter(etree.Entity), None)
    if entity is not None:
        raise BadFile(
            f"{name}, line {entity.sourceline}: uses the entity {entity.text}, which only a "
            "document type declaration explains; those are not read. Replace it by its character."
        )


def _bad(name: str, error: etree.XMLSyntaxError) -> BadFile:
    line, column = error.position
    reason = re.sub(r", line \d+, column \d+.*$", "", error.msg or "not well-formed")
    return BadFile(f"{name}, line {line}, column {column}: not XML: {reason}.")
