"""Rows: what `clean` is given, one per file, element, line or record of a source.

The row pattern of a source says which: see `Pattern`. Reading rows out of files is in `reader`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factory.errors import DeclarationError

if TYPE_CHECKING:
    from lxml.etree import _Element  # pyright: ignore[reportPrivateUsage]  its public name

    type Element = _Element


@dataclass(frozen=True, slots=True)
class Pattern:
    """A row pattern in its two parts.

    | pattern              | a row is                                            |
    |----------------------|-----------------------------------------------------|
    | `**/*.xml`           | a whole XML file: `row.element` is its root         |
    | `**/*.xml//QAPair`   | each `QAPair` element, at any depth                 |
    | `*.jsonl`            | each line: `row.record`                             |
    | `*.json`             | each item of the list, or the whole object          |
    | anything else        | a whole file: `row.content`                         |
    """

    files: str
    element: str | None

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Split `**/*.xml//QAPair`.

        Raises:
            DeclarationError: the pattern is empty, absolute or climbs out of the source.
        """
        files, separator, element = text.partition("//")
        parts = files.split("/")
        if not files or files.startswith("/") or ".." in parts or (separator and not element):
            raise DeclarationError(
                f"Row pattern {text!r} names no files inside the source. "
                "Write for instance '**/*.xml', '**/*.xml//QAPair' or '*.jsonl'."
            )
        if separator and not files.endswith("xml"):
            raise DeclarationError(
                f"Row pattern {text!r} asks for elements of files that are not XML. "
                "Leave out the part from '//' on."
            )
        return cls(files, element if separator else None)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source. Which of its three contents is set depends on the row pattern.

    An XML element is whole while `clean` looks at its row; afterwards it is emptied.
    """

    file: str
    """Path inside the source, with forward slashes."""

    position: int | None
    """Counted from 1 in its file: element, line or item; none for a whole file."""

    xml: "Element | None" = None
    json: Mapping[str, Any] | None = None
    data: bytes | None = None

    @property
    def id(self) -> str:
        """File and position, `1_CancerGov_QA/0000001_1.xml#3`: unique in the source."""
        return self.file if self.position is None else f"{self.file}#{self.position}"

    @property
    def element(self) -> "Element":
        """The XML element: the file's root, or the element that the pattern names."""
        if self.xml is None:
            raise TypeError(f"row {self.id} is not XML, so it has no element")
        return self.xml

    @property
    def record(self) -> Mapping[str, Any]:
        """The JSON object of a line or item."""
        if self.json is None:
            raise TypeError(f"row {self.id} is not JSON, so it has no record")
        return self.json

    @property
    def content(self) -> bytes:
        """The bytes of a whole file that is neither XML nor JSON."""
        if self.data is None:
            raise TypeError(f"row {self.id} is not a plain file, so it has no content")
        return self.data

    def text(self, name: str) -> str:
        """Text of the first element below this one with that tag, or of the record's field.

        A tag is matched without its XML namespace.

        An element or field without a value is an empty string.

        Raises:
            KeyError: there is no such element or field.
            TypeError: the field holds something other than text.
        """
        if self.json is not None:
            value = self.json[name]
            if not isinstance(value, str | None):
                raise TypeError(f"field {name!r} is {type(value).__name__}, not text")
            return value or ""
        found = self.element.find(f".//{{*}}{name}")
        if found is None:
            raise KeyError(name)
        return "".join(str(part) for part in found.itertext())
