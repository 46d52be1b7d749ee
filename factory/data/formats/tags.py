"""Tags: what the bytes of a well-formed element tell of those inside it, without a parser.

Where there is no comment, no instruction and no CDATA section, every `<` begins a tag. So elements
are found, and left out, by their names. Whatever is not so plain is left to the parser.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

BLANK = rb"[ \t\r\n]"
HEAD = re.compile(rb"[^<>\"']*(?:(?:\"[^<\"]*\"|'[^<']*')[^<>\"']*)*>")
"""What follows the name of a tag that opens an element, up to its end."""

CLOSED = re.compile(BLANK + rb"*>")
"""What follows the name of a tag that closes one."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""Names that are the same bytes in every encoding of what is cut, and mean themselves only."""

_MORE = (re.compile(rb"!(?<=<!)"), re.compile(rb"\?(?<=<\?)"))
"""Begin with what is rare in text, so that they are found sooner."""

_OPENS, _CLOSES, _EMPTY, _PREFIX = b"<>/:"
_AFTER_NAME = frozenset(b" \t\r\n/>")
_BELOW = len(b"<q")
"""Where names below the element are looked for: its own begins before."""


@lru_cache
def named(*tags: str) -> tuple[bytes, ...] | None:
    """Tags as they stand in the bytes; none if one may stand there in another way."""
    return tuple(tag.encode() for tag in tags) if all(map(_PLAIN.fullmatch, tags)) else None


def only(data: bytes) -> bool:
    """Whether every `<` begins a tag, which the functions below take for granted."""
    return not any(one.search(data) for one in _MORE)


def has(record: bytes, name: bytes) -> bool | None:
    """Whether an element of the name is below this one; none where that takes a parser."""
    at = record.find(name, _BELOW)
    if at < 0:
        return False
    opens = record[at - 1] == _OPENS and record[at + len(name)] in _AFTER_NAME
    return True if opens else None


def without(record: bytes, names: Iterable[bytes]) -> bytes | None:
    """The element without those of the names below it; none where that takes a parser.

    Where one of them is inside another of its name, what is left is not well-formed.
    """
    for name in names:
        parts: list[bytes] = []
        kept, at = 0, _BELOW
        while (at := record.find(name, at)) >= 0:
            after = at + len(name)
            before = record[at - 1]
            if before == _PREFIX:
                return None
            if before != _OPENS or record[after] not in _AFTER_NAME:
                at = after
                continue
            parts.append(record[kept : at - 1])
            kept = at = _end(record, name, after)
        if parts:
            record = b"".join((*parts, record[kept:]))
    return record


def _end(record: bytes, name: bytes, after: int) -> int:
    """Where an element ends whose tag's name ends here: behind the first that closes the name."""
    if record[after] != _CLOSES:
        head = HEAD.match(record, after)
        if head is not None and record[head.end() - 2] == _EMPTY:
            return head.end()
    return record.index(b">", record.index(b"</" + name, after)) + 1
