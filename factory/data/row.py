"""Rows: what `clean` is given, one per file, element, line or record of a source.

The row pattern of a source says which, see `pattern`. Reading rows out of files is in `reader`.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from factory.data.pattern import Pattern, Rows
from factory.errors import BadRow

if TYPE_CHECKING:
    from lxml.etree import _Element  # pyright: ignore[reportPrivateUsage]  its public name

    from factory.data.formats.fragment import Fragment
    from factory.data.images import Image

    type Element = _Element

__all__ = ["Pattern", "Row", "Rows"]

NAMES_SHOWN = 12
"""Of fields and elements, in the message that one is not there."""

type Beside = Callable[[str], bytes]
"""Reads another file of the source, by its path from the folder of the row's file."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source. Which of its contents is set depends on the row pattern.

    An XML element is whole while `clean` looks at its row; afterwards it is emptied.
    """

    file: str
    """Path inside the source, with forward slashes; in an archive `data.zip!folder/a.csv`."""

    position: int | None
    """Counted from 1 in its file: element, line, item or row; none for a whole file."""

    xml: "Element | None" = None
    fragment: "Fragment | None" = None
    """Of a large XML document, which becomes an element when one is asked for."""

    json: Mapping[str, Any] | None = None
    data: bytes | None = None
    plain: str | None = None
    picture: "Image | None" = None
    """Of a frame or tile, which is no file by itself."""

    bad: str | None = None
    """Why it cannot become a sample, whatever `clean` does: nothing else is set then."""

    max_pixels: int | None = None
    """The largest image that the dataset allows, where it allows any."""

    opener: Beside | None = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        """File and position, `1_CancerGov_QA/0000001_1.xml#3`: unique in the source."""
        return self.file if self.position is None else f"{self.file}#{self.position}"

    @property
    def element(self) -> "Element":
        """The XML element: the file's root, or the element that the pattern names."""
        if self.xml is not None:
            return self.xml
        if self.fragment is None:
            raise self._other("not XML, so it has no element")
        return self.fragment.element

    @property
    def is_xml(self) -> bool:
        """Whether it has an element."""
        return self.xml is not None or self.fragment is not None

    @property
    def record(self) -> Mapping[str, Any]:
        """The JSON object of a line or item, or a table's row by the names of its columns."""
        if self.json is None:
            raise self._other("not JSON and no table's, so it has no record")
        return self.json

    @property
    def content(self) -> bytes:
        """The bytes of a whole file that is neither XML nor JSON nor a table."""
        if self.data is None:
            raise self._other("not a plain file, so it has no content")
        return self.data

    @property
    def string(self) -> str:
        """The text of a whole text file."""
        if self.plain is None:
            raise self._other("not a text file, so it has no string; declare format='text'")
        return self.plain

    @property
    def image(self) -> "Image":
        """The frame, the tile, or the file as an image, wholly decoded.

        Raises:
            BadRow: it is none that the dataset allows.
        """
        return self.picture or self.decoded(self.content, self.file)

    def decoded(self, data: bytes, name: str = "") -> "Image":
        """An image out of bytes, from `beside` or from a field, of a file with this name.

        Raises:
            BadRow: it is none that the dataset allows.
        """
        from factory.data.images import reasons
        from factory.data.images.pictures import decode

        if self.max_pixels is None:
            raise BadRow(reasons.NO_POLICY)
        return decode(data, self.max_pixels, name)

    def beside(self, path: str) -> bytes:
        """Another file of the source, by its path from the folder of this row's file.

        The row of an archive reads from the same archive.

        Raises:
            BadRow: it is not there, or the path leads out of the source.
        """
        if self.opener is None:
            raise self._other("read without its source, so nothing is beside it")
        return self.opener(path)

    def has(self, name: str) -> bool:
        """Whether there is something that `text` reads: an element with that tag, or the field.

        Ask for what a row cannot do without before its element: then rows without are read faster.
        """
        if self.json is not None:
            return name in self.json
        if self.fragment is not None and (known := self.fragment.has(name)) is not None:
            return known
        return next(self.element.iterdescendants(f"{{*}}{name}"), None) is not None

    def without(self, *names: str) -> "Element":
        """The element without those below it that have one of these tags, whatever is in them.

        Of a large document they are never parsed: name the long parts that `clean` does not read.
        Tags are matched without their XML namespace. What is around the element has `element` only.
        """
        from lxml import etree  # not above: few datasets are XML

        found = self.fragment.without(names) if self.fragment is not None else None
        if found is None:
            found = deepcopy(self.element)
            etree.strip_elements(found, *(f"{{*}}{name}" for name in names), with_tail=False)
        return found

    def text(self, name: str) -> str:
        """Text of the first element below this one with that tag, or of the record's field.

        A tag is matched without its XML namespace.

        An element or field without a value is an empty string.

        Raises:
            LookupError: there is no such element or field.
            TypeError: the field holds something other than text.
        """
        if self.json is not None:
            if name not in self.json:
                raise LookupError(_unknown("field", name, self.json))
            value = self.json[name]
            if not isinstance(value, str | None):
                raise TypeError(f"field {name!r} is {type(value).__name__}, not text")
            return value or ""
        found = self.element.find(f".//{{*}}{name}")
        if found is None:
            tags = (str(one.tag).rpartition("}")[2] for one in self.element.iterdescendants("*"))
            raise LookupError(_unknown("element", name, dict.fromkeys(tags)))
        return "".join(str(part) for part in found.itertext())

    def _other(self, what: str) -> Exception:
        if self.bad is not None:
            return BadRow(self.bad)
        return TypeError(f"row {self.id} is {what}")


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    """For a `LookupError`: a `KeyError` puts its message into quotes."""
    names = list(known)
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"no {what} {name!r}; there are {shown or 'none'}{more}"
