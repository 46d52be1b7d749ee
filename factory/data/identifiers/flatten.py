"""Rows to text: structured fields become lines of `label: value`, as the rules read labels.

`{"birthDate": "1940-03-05"}` is read as `birth Date: 1940-03-05`. Offsets in a report count
characters of this rendition. Text in base64, as FHIR attaches documents, is decoded; what is no
text stays as it is, and `encoded` says of a packed file that it cannot be read.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from factory.data.identifiers.encoded import may_be_base64
from factory.data.row import Row

if TYPE_CHECKING:
    from factory.data.row import Element

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]{64,}={0,2}\s*")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class RowText:
    """What a row says."""

    text: str
    unreadable: int
    """Parts of it that are neither text nor a structure of texts."""

    def __repr__(self) -> str:
        return f"RowText({len(self.text)} characters, {self.unreadable} unreadable)"


def row_text(row: Row) -> RowText:
    """The text of a row of any kind."""
    if row.json is not None:
        return object_text(row.json)
    if row.is_xml:
        return RowText("\n".join(_element_lines(row.element)), 0)
    if row.plain is not None:
        return RowText(row.plain, 0)
    text = decode(row.data or b"")
    return RowText("", 1) if text is None else RowText(text, 0)


def object_text(value: Any) -> RowText:
    """The text of a JSON value: a line for each string or number in it."""
    return RowText("\n".join(f"{label}: {leaf}" for label, leaf in _leaves(value)), 0)


def decode(data: bytes) -> str | None:
    """Bytes as text: by their mark, as UTF-8, else byte by byte; none if they are no text."""
    for mark, encoding in (
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
        (b"\xef\xbb\xbf", "utf-8-sig"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    text = data.decode("utf-8", errors="ignore")
    if len(text.encode("utf-8")) != len(data):
        text = data.decode("cp1252", errors="replace")
    return None if _CONTROL.search(text) else text


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Labels and texts, in order; a stack, because nesting can be deeper than Python's."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        label, one = stack.pop()
        if isinstance(one, Mapping):
            items = cast(Mapping[Any, Any], one).items()
            children = [(f"{label}.{_label(key)}".lstrip("."), child) for key, child in items]
            stack.extend(reversed(children))
        elif isinstance(one, bytes):
            continue  # `packed` has them
        elif isinstance(one, Sequence) and not isinstance(one, str):
            numbered = enumerate(cast(Sequence[Any], one))
            stack.extend(reversed([(f"{label}[{place}]", child) for place, child in numbered]))
        elif one is not None and not isinstance(one, bool):
            text = _unpack(str(one))
            inner = _written(text)
            if inner is None:
                yield label, text
            else:
                stack.append((label, inner))


def packed(value: Any) -> Iterator[bytes]:
    """Bytes in a value of a Parquet file: images, mostly."""
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, bytes):
            yield one
        elif isinstance(one, Mapping):
            stack.extend(cast(Mapping[Any, Any], one).values())
        elif isinstance(one, list | tuple):
            stack.extend(cast(list[Any], one))


def _label(key: Any) -> str:
    return _CAMEL.sub(" ", str(key)).replace("_", " ")


def _unpack(text: str) -> str:
    """Text in base64 as text; what holds something else, as it is."""
    if not _BASE64.fullmatch(text) or " " in text.strip() or not may_be_base64(text):
        return text
    letters = re.sub(r"\s|=", "", text).replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(letters + "=" * (-len(letters) % 4))
    except binascii.Error:
        return text
    decoded = decode(data)
    return text if decoded is None else decoded


def _written(text: str) -> Any:
    """The JSON value that a text is; none if it is just a text. Quotes alone are JSON, too."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str | dict | list) else None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no name comes twice: of two values one would not be seen.

    Raises:
        ValueError: one does.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError
    return value


def _element_lines(root: "Element") -> Iterator[str]:
    for element in root.iter():
        if not isinstance(element.tag, str):  # pyright: ignore[reportUnnecessaryIsInstance]  comments
            continue
        label = _label(element.tag.rpartition("}")[2])
        for name, value in element.attrib.items():
            yield f"{label}.{_label(str(name))}: {value}"
        if element.text and element.text.strip():
            yield f"{label}: {element.text}"
        if element.tail and element.tail.strip():
            yield str(element.tail)
