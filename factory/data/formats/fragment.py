"""Fragments: elements that were cut out of a document as bytes, see `cut`.

They are verified when they are cut, and become a tree at the same time or when one is asked for:
verifying alone takes half the time, and many a row is refused for what it does not have.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lxml import etree

if TYPE_CHECKING:
    from factory.data.row import Element

_MARK = " | "
_TEXT = re.compile(rb">([^<]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""Tags that are the same bytes in every encoding of what is cut, and mean themselves only."""

BYTES_PER_CHARACTER = 10
"""Of a record, mark-up included, so that its beginning has enough text most of the time."""


class _Nothing:
    """Builds no tree; parsed by such a parser, a text is verified only."""

    def close(self) -> None:
        """The result: none."""


@dataclass
class Around:
    """The elements around those that are cut, and how they are parsed."""

    ancestors: "list[Element]"
    """From the root on."""

    encoding: str
    options: dict[str, Any]
    asked: set[bytes] = field(default_factory=set[bytes])
    """What fragments were asked to have: one that has it all becomes a tree at once."""

    def __post_init__(self) -> None:
        self.before, self.after = _wrapping(self.ancestors)
        options: dict[str, Any] = {**self.options, "encoding": self.encoding}
        nothing: Any = _Nothing()
        self.parser = etree.XMLParser(**options)
        self.verifier = etree.XMLParser(target=nothing, **options)

    def fragment(self, record: bytes) -> "Fragment | None":
        """What these bytes are; none if they do not parse."""
        made = Fragment(record, self)
        for name in self.asked:
            if name not in record:
                made.missing = name
                return made if self._is_well_formed(record) else None
        try:
            made.tree = self.parsed(record)
        except etree.XMLSyntaxError:
            return None
        return made

    def parsed(self, record: bytes) -> "Element":
        """The element that these bytes are, below those around it."""
        element = etree.fromstring(b"%b%b%b" % (self.before, record, self.after), self.parser)
        for _ in self.ancestors:
            element = element[0]
        return element

    def _is_well_formed(self, record: bytes) -> bool:
        """Inside one more element: without a tree, the parser allows one level more."""
        try:
            deeper = b"<r>%b%b%b</r>" % (self.before, record, self.after)
            etree.fromstring(deeper, self.verifier)
        except etree.XMLSyntaxError:
            return False
        return not len(self.verifier.error_log)  # of prefixes that are not declared


@dataclass(slots=True)
class Fragment:
    """An element that may be bytes yet."""

    record: bytes
    around: Around
    tree: "Element | None" = None
    missing: bytes | None = None
    """What the one before was asked to have, and this one has not."""

    @property
    def element(self) -> "Element":
        """The element, below those around it."""
        if self.tree is None:
            self.tree = self.around.parsed(self.record)
        return self.tree

    def lacks(self, tag: str) -> bool:
        """Whether no element of the tag is in it for certain."""
        if not _PLAIN.fullmatch(tag):
            return False
        name = tag.encode()
        self.around.asked.add(name)
        return name == self.missing or (self.tree is None and name not in self.record)

    def beginning(self, characters: int) -> str | None:
        """So many characters of its text or more, if they are found without a tree."""
        part = self.record[: BYTES_PER_CHARACTER * characters]
        part = part[: part.rindex(b"<")]
        if b"&" in part or b"<!" in part or b"<?" in part or part.count(b"<") != part.count(b">"):
            return None
        text = b"".join(_TEXT.findall(part)).decode(self.around.encoding)
        flat = " ".join(text.split())
        return flat if len(flat) >= characters else None


def _wrapping(ancestors: "list[Element]") -> tuple[bytes, bytes]:
    """Tags of the same names, attributes and namespaces, to open and to close."""
    inner = etree.Element("document")  # in which the root is made, as all the others are in theirs
    for one in ancestors:
        attributes: Any = dict(one.attrib)
        names: Any = one.nsmap
        inner = etree.SubElement(inner, str(one.tag), attributes, names)
    inner.text = _MARK
    outer = inner.getroottree().getroot()[0]
    before, _, after = etree.tostring(outer).rpartition(_MARK.encode())
    return before, after
