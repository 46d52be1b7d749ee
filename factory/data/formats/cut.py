"""Cutting: the elements of a large XML document, found in its bytes by their tags.

Records of a large document follow each other with nothing but white space between them. Those are
cut out of the bytes and parsed one by one, in the tags of the elements around them, in less time
than a parser needs that keeps the whole document; see `markup`. From the first place on that is not
so plain - a comment between two records, one inside another, any entity, an xml:id, anything that
does not parse, the end of the last record - the rest is left to that parser, and so is every error:
what was cut stands before it as so many lines and columns in comments, and positions are those of
the file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from factory.data.formats.fragment import Around, Fragment
from factory.data.formats.tags import BLANK, CLOSED, HEAD

if TYPE_CHECKING:
    from factory.data.row import Element

SMALLEST = 2**15
"""Bytes that are read at first: a document that ends within them is not worth cutting."""

LARGEST = 2**23
"""Bytes that are held to find the end of a record."""

CHUNK = 2**15
"""Bytes that a parser is given at once; of a comment as well, as very long ones are refused."""

TOGETHER = 256
"""Records that are found, and verified, before the first of them is given."""

_COMMENT = len("<!---->")
_BREAK = ord("\n")
_PLAIN = re.compile(r"utf-?8|us-ascii|ascii|iso-8859-\d+|(windows-|cp)125\d", re.IGNORECASE)
"""Encodings in which the bytes of ASCII stand for ASCII and for nothing else."""

_DECLARES = re.compile(rb"<!(ENTITY|ATTLIST)")
"""What changes the text or the attributes of elements anywhere below."""

_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);|[#\w]{0,8}\Z)")
"""None that XML has by itself, and none that is cut off at the end of what is held."""

_ID = re.compile(b"xml:id")  # in many bytes a pattern is found sooner than the same text
"""An attribute whose value no other element of the document may have."""

_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[ \t\r\n].*?\?>", re.DOTALL)


class Cutting:
    """Elements of a tag out of a stream, as far as they can be cut; then `rest` has what follows.

    Args:
        stream: the document.
        tag: the name of the elements, without any namespace.
        options: of the parser, those for the whole document.
    """

    def __init__(self, stream: BufferedReader, tag: str, options: dict[str, Any]) -> None:
        name = re.escape(tag).encode()
        self.count = 0
        """Elements so far."""

        self._stream = stream
        self._tag = tag
        self._name = tag.encode()
        self._options = options
        self._start = re.compile(BLANK + rb"*(<" + name + rb")(?=[ \t\r\n/>])")
        self._any = re.compile(rb"<(?:[^ \t\r\n<>/!?:\"'=]+:)?" + name + rb"[ \t\r\n/>]")
        self._prolog = b""
        self._passed = _Place()
        self._hold(stream.read(SMALLEST))

    def __iter__(self) -> Iterator[Fragment]:
        """The elements, each in the elements around it, which hold nothing else.

        After the last one that can be cut comes none, without an error.
        """
        around = self._around() if len(self._held) == SMALLEST else None
        if around is None:
            return
        while spans := list(islice(self._spans(), TOGETHER)):
            verified = around.ahead and around.verified(self._held[spans[0][0] : spans[-1][1]])
            for start, end in spans:
                record = self._held[start:end]
                made = Fragment(record, around, plain=True) if verified else around.fragment(record)
                if made is None:
                    return
                self._at = end
                self.count += 1
                yield made

    def rest(self) -> Iterator[bytes]:
        """The document with what was cut as comments of as many lines, to be read once."""
        self._passed.go(self._held[: self._at])
        yield self._prolog
        yield from self._passed.padding()
        for at in range(self._at, len(self._held), CHUNK):
            yield self._held[at : at + CHUNK]
        while chunk := self._stream.read(CHUNK):
            yield chunk

    def _around(self) -> Around | None:
        """What stands around the first element; none if elements of the document cannot be cut."""
        first = self._any.search(self._held)
        if first is None or not self._tag.isascii() or _DECLARES.search(self._held, 0, first.end()):
            return None
        prolog = self._held[: first.start()]
        probe = _probe(prolog, self._tag, self._options)
        if probe is None:
            return None
        encoding = (self._options["encoding"] or _encoding(prolog)).lower()
        marked = prolog.startswith(b"\xef\xbb\xbf") and encoding != "utf-8"
        version = probe.getroottree().docinfo.xml_version
        if marked or not _PLAIN.fullmatch(encoding) or version != "1.0":
            return None
        self._prolog = prolog
        self._hold(self._held[len(prolog) :])
        self._passed.encoding = encoding
        return Around(list(probe.iterancestors())[::-1], encoding, self._options)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Where the next elements begin and end in what is held, as far as they are plain.

        More is read if not one of them is whole.
        """
        at = self._at
        while True:
            start = self._start.match(self._held, at)
            end = None if start is None else self._ending(start.end())
            if start is not None and end is not None:
                if not 0 < end <= self._plain_until:
                    return
                yield start.start(1), end
                at = end
                continue
            unlike = start is None and len(self._held) - at > SMALLEST
            if at > self._at or unlike or not self._grow():
                return
            at = self._at

    def _ending(self, at: int) -> int | None:
        """The end of the element whose tag's name ends here; 0 if there is another one inside."""
        if self._held[at : at + 1] != b">":
            head = HEAD.match(self._held, at)
            if head is None:
                return None
            if self._held[head.end() - 2 : head.end()] == b"/>":
                return head.end()
        while (at := self._held.find(self._name, at)) >= 0:
            after = at + len(self._name)
            if self._held[at - 2 : at] == b"</":
                if (closed := CLOSED.match(self._held, after)) is not None:
                    return closed.end()
            elif self._opens(at, after):
                return 0
            at = after
        return None

    def _opens(self, start: int, end: int) -> bool:
        """Whether the name that stands there is that of a tag, of any namespace."""
        found = self._any.match(self._held, self._held.rfind(b"<", 0, start))
        return found is not None and found.end() == end + 1

    def _grow(self) -> bool:
        """Let go of what was cut, and read as much again as is held, a window at least."""
        left = len(self._held) - self._at
        more = self._stream.read(max(left, 8 * SMALLEST)) if left < LARGEST else b""
        if more:
            self._passed.go(self._held[: self._at])
            self._hold(self._held[self._at :] + more)
        return bool(more)

    def _hold(self, held: bytes) -> None:
        self._held, self._at = held, 0
        entity = _ENTITY.search(held)
        plain = len(held) if entity is None else entity.start()
        unique = _ID.search(held, 0, plain)
        self._plain_until = plain if unique is None else unique.start()


@dataclass
class _Place:
    """How far something reaches, as a parser counts."""

    encoding: str = "ascii"
    lines: int = 0
    columns: int = 0
    """Characters after the last line break."""

    def go(self, passed: bytes) -> None:
        """Go on over these bytes, which end where a character does."""
        lines = int(np.count_nonzero(np.frombuffer(passed, np.uint8) == _BREAK))  # the fastest way
        last = passed[passed.rfind(b"\n") + 1 :]
        self.columns = (0 if lines else self.columns) + len(last.decode(self.encoding, "replace"))
        self.lines += lines

    def padding(self) -> Iterator[bytes]:
        """Comments and white space that reach as far."""
        lines = self.lines
        while lines > 1:
            some = min(lines - 1, CHUNK)
            yield b"<!--%b-->" % (b"\n" * some)
            lines -= some
        yield b"\n" * lines
        columns = self.columns
        while columns >= _COMMENT:
            some = min(columns - _COMMENT, CHUNK)
            yield b"<!--%b-->" % (b" " * some)
            columns -= some + _COMMENT
        yield b" " * columns


def _probe(prolog: bytes, tag: str, options: dict[str, Any]) -> "Element | None":
    """An element of the tag after the beginning of a document, if one can stand there."""
    parser: Any = etree.XMLPullParser(events=("end",), **options)
    try:
        parser.feed(prolog)
        parser.feed(f"<{tag}/>".encode())
    except etree.XMLSyntaxError:
        return None
    ended: list[Any] = [element for _, element in parser.read_events()]
    if not ended or len(parser.feed_error_log) or etree.QName(ended[-1]).localname != tag:
        return None
    return ended[-1] if ended[-1].getparent() is not None else None


def _encoding(prolog: bytes) -> str:
    """The encoding that a document says it has; lxml tells it of one that is closed, and only then.

    Its declaration alone is closed by an element of ASCII: names in the document may be other.
    """
    declaration = _DECLARATION.match(prolog)
    if declaration is None:
        return "utf-8"
    return etree.fromstring(declaration[0] + b"<r/>").getroottree().docinfo.encoding or "utf-8"
