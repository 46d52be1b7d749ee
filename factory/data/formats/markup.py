"""Markup: XML documents, and the elements of documents that may be larger than the memory.

The document says its encoding by itself. External entities and document types are never fetched,
and a document that uses entities of its own is refused, since expanding them can fill the memory.
"""

import codecs
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lxml import etree

from factory.data.formats.cut import Cutting
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
    parser = etree.XMLParser(**_options(file))
    root = etree.parse(file.stream, parser).getroot()
    _refuse_entities(root, file.name)
    _refuse_unknown(parser.error_log, file.name)
    _note(file, root)
    return file.row(None, xml=root)


def _elements(file: Opened, tag: str) -> Iterator[Row]:
    """One row per element: those that can be cut out of the bytes, then the others."""
    cutting = Cutting(file.stream, tag, _options(file))
    for fragment in cutting:
        yield file.row(cutting.count, fragment=fragment)
        fragment.tree = None  # before the next is made, so that it is made in the same memory
    yield from _parsed(file, tag, cutting.rest(), cutting.count)


def _parsed(file: Opened, tag: str, chunks: Iterator[bytes], position: int) -> Iterator[Row]:
    """One row per element, emptying each afterwards."""
    open_positions: list[int] = []
    parser: Any = etree.XMLPullParser(("start", "end"), tag=f"{{*}}{tag}", **_options(file))
    for chunk in chunks:
        parser.feed(chunk)
        _refuse_unknown(parser.feed_error_log, file.name)
        events: Any = parser.read_events()
        for event, element in events:
            if event == "start":
                position += 1
                open_positions.append(position)
                continue
            _refuse_entities(element, file.name)
            yield file.row(open_positions.pop(), xml=element)
            if not open_positions:
                _empty(element)
    _note(file, parser.close())


def parser_encoding(name: str) -> str | None:
    """What the parser calls an encoding that Python knows by this name; none if it has none."""
    for one in (name, codecs.lookup(name).name):
        try:
            etree.XMLParser(encoding=one)
        except LookupError:
            continue
        return one
    return None


def _options(file: Opened) -> dict[str, Any]:
    declared = file.rows.encoding
    return SAFE | {
        "encoding": None if declared is None else parser_encoding(declared),
        "remove_comments": True,
        "remove_pis": True,
    }


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
    """Refuse what only a document type explains, in texts and in attributes."""
    entity = next(element.iter(etree.Entity), None)
    if entity is not None:
        raise _of_entity(name, entity.sourceline, f"{entity.text}")
    types: Any = element.getroottree().docinfo.internalDTD
    names = [re.escape(f"{one.name}") for one in types.iterentities()] if types is not None else []
    if not names:
        return
    # Attributes are given with entities replaced; only when written again they have them.
    used = re.compile(f"&(?:{'|'.join(names)});")
    root = element.getroottree().getroot()
    if (found := used.search(_written(root))) is not None:
        raise _of_entity(name, _user(root, used).sourceline, found[0])


def _user(element: "Element", used: re.Pattern[str]) -> "Element":
    """The element that has the attribute."""
    for child in element.iterchildren():
        if used.search(_written(child)):
            return _user(child, used)
    return element


def _written(element: "Element") -> str:
    return etree.tostring(element, encoding="unicode", with_tail=False)


def _refuse_unknown(log: Any, name: str) -> None:
    """Refuse what the parser passes over: after an entity that it does not know it may even stop.

    Where a document type is named that could explain it, it is left out of attributes.
    """
    for entry in log:
        if entry.type_name in ("WAR_UNDECLARED_ENTITY", "ERR_UNDECLARED_ENTITY"):
            entity = re.sub(r"Entity '(.*)' not defined", r"&\1;", entry.message)
            raise _of_entity(name, entry.line, entity)


def _of_entity(name: str, line: int | None, entity: str) -> BadFile:
    return BadFile(
        f"{name}, line {line}: uses the entity {entity}, which only a "
        "document type declaration explains; those are not read. Replace it by its character."
    )


def _bad(name: str, error: Any) -> BadFile:
    line, column = error.position
    reason = re.sub(r",? (line \d+, column \d+.*|try XML_PARSE_HUGE.*)$", "", error.msg or "")
    where = f"{name}, line {line}, column {column}"
    if "amplification" in reason:
        return BadFile(
            f"{where}: has entities that grow far beyond the file, as those of an attack do. "
            "Replace them by their characters."
        )
    if error.code == etree.ErrorTypes.ERR_RESOURCE_LIMIT or "too big found" in reason:
        return BadFile(
            f"{where}: asks for more than is read ({reason.strip()}). A text, comment or attribute "
            "may have 10,000,000 bytes, and elements may be 256 deep. Split what is larger."
        )
    return BadFile(f"{where}: not XML: {reason.strip() or 'not well-formed'}.")
