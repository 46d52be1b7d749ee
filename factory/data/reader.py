"""Reading: the rows of raw files, in the order of their paths and positions.

What a row is says the pattern, see `row`. A file that cannot be parsed ends the step with its
name and position; external entities and documents are never fetched, and a document that uses
entities of its own is refused, since expanding them can fill the memory.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lxml import etree

from factory.data.formats.notes import Notes
from factory.data.row import Pattern, Row
from factory.errors import BadFile

if TYPE_CHECKING:
    from factory.data.row import Element

__all__ = ["Notes", "read"]


def read(root: Path, names: Iterable[str], pattern: Pattern, notes: Notes) -> Iterator[Row]:
    """The rows of these files below `root`.

    Raises:
        BadFile: a file cannot be parsed.
    """
    for name in names:
        yield from _rows(root / name, name, pattern)


def _rows(path: Path, name: str, pattern: Pattern) -> Iterator[Row]:
    suffix = name.rpartition(".")[2].lower()
    if pattern.element is not None:
        return _elements(path, name, pattern.element)
    if suffix in ("xml", "nxml"):
        return _document(path, name)
    if suffix == "jsonl":
        return _lines(path, name)
    if suffix == "json":
        return _items(path, name)
    return iter([Row(name, None, data=path.read_bytes())])


def _document(path: Path, name: str) -> Iterator[Row]:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.parse(path, parser).getroot()
    except etree.XMLSyntaxError as error:
        raise _bad_xml(name, error) from None
    _refuse_entities(root, name)
    yield Row(name, None, xml=root)


def _elements(path: Path, name: str, tag: str) -> Iterator[Row]:
    """One row per element, emptying each afterwards: a file may be larger than the memory."""
    position = 0
    open_positions: list[int] = []
    with path.open("rb") as file:
        events = etree.iterparse(
            file,
            events=("start", "end"),
            tag=f"{{*}}{tag}",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            for event, element in events:
                if event == "start":
                    position += 1
                    open_positions.append(position)
                    continue
                _refuse_entities(element, name)
                yield Row(name, open_positions.pop(), xml=element)
                if not open_positions:
                    _empty(element)
        except etree.XMLSyntaxError as error:
            raise _bad_xml(name, error) from None


def _empty(element: "Element") -> None:
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _refuse_entities(element: "Element", name: str) -> None:
    entity = next(element.iter(etree.Entity), None)
    if entity is not None:
        raise BadFile(
            f"{name}, line {entity.sourceline}: uses the entity {entity.text}, which only a "
            "document type declaration explains; those are not read. Replace it by its character."
        )


def _bad_xml(name: str, error: etree.XMLSyntaxError) -> BadFile:
    line, column = error.position
    reason = re.sub(r", line \d+, column \d+.*$", "", error.msg or "not well-formed")
    return BadFile(f"{name}, line {line}, column {column}: not XML: {reason}.")


def _lines(path: Path, name: str) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                value = _json(line.rstrip(b"\r\n"), name, number)
                yield Row(name, number, json=_object(value, name, number))


def _items(path: Path, name: str) -> Iterator[Row]:
    value = _json(path.read_bytes(), name, 1)
    if isinstance(value, list):
        for number, item in enumerate(cast(list[Any], value), start=1):
            yield Row(name, number, json=_object(item, name, number))
        return
    yield Row(name, None, json=_object(value, name, 1))


def _object(value: Any, name: str, number: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadFile(f"{name}, row {number}: not a JSON object but {type(value).__name__}.")
    return cast(dict[str, Any], value)


def _json(data: bytes, name: str, first_line: int) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        line = first_line + data[: error.start].count(b"\n")
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise BadFile(f"{name}, line {line}, column {column}: not UTF-8.") from None
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise BadFile(
            f"{name}, line {line}, column {error.colno}: not JSON: {error.msg}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{name}, line {first_line}: not JSON: {error}.") from None


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
