"""Fragments: elements that were cut out of a document as bytes, see `cut`.

They are verified when they are cut, and become a tree at the same time or when one is asked for:
verifying alone takes half the time, and many a row is refused for what it does not have. Where only
a part of each is asked for, many are verified at once, and no more than that part becomes a tree.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from factory.data.formats import tags

if TYPE_CHECKING:
    from factory.data.row import Element

_MARK = " | "
_OPENS, _CLOSES = b"<>"
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

    ahead: bool = False
    """Whether only parts of fragments are asked for: then none becomes a tree at once."""

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

    def verified(self, records: bytes) -> bool:
        """Whether each of several that follow each other would parse, as far as can be told."""
        return tags.only(records) and self._is_well_formed(records)

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

    plain: bool | None = None
    """Whether every `<` in it begins a tag; none before one has looked."""

    @property
    def element(self) -> "Element":
        """The element, below those around it."""
        if self.tree is None:
            self.tree = self.around.parsed(self.record)
        return self.tree

    def without(self, names: tuple[str, ...]) -> "Element | None":
        """A tree without the elements of these tags, if it can be told without one of all."""
        self.around.ahead = True
        known = tags.named(*names)
        left = None if known is None or not self._plain() else tags.without(self.record, known)
        try:
            return None if left is None else self.around.parsed(left)
        except etree.XMLSyntaxError:
            return None

    def has(self, tag: str) -> bool | None:
        """Whether an element of the tag is below this one, if it can be told without a tree."""
        known = tags.named(tag)
        if known is None:
            return None
        (name,) = known
        self.around.asked.add(name)
        if name == self.missing:
            return False
        if self.tree is not None or (found := tags.has(self.record, name)) is None:
            return None
        return found and (self._plain() or None)

    def _plain(self) -> bool:
        if self.plain is None:
            self.plain = tags.only(self.record)
        return self.plain

    def beginning(self, characters: int) -> str | None:
        """So many characters of its text or more, if they are found without a tree."""
        part = self.record[: BYTES_PER_CHARACTER * characters]
        part = part[: part.rindex(b"<")]
        if b"&" in part or part.count(b"<") != part.count(b">") or not self._plain():
            return None
        text = _outside_tags(part).decode(self.around.encoding)
        flat = " ".join(text.split())
        return flat if len(flat) >= characters else None


def _outside_tags(part: bytes) -> bytes:
    """Text where each `<` has one `>`; without a loop over tags, of which there are many."""
    found = np.frombuffer(part, np.uint8)
    closes = found == _CLOSES
    inside = np.logical_xor.accumulate((found == _OPENS) | closes)
    return found[~(inside | closes)].tobytes()


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
