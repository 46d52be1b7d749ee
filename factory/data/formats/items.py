"""Items: JSON files. A row is each item of the list, each value of a keyed object, or the object.

A list is never held as a whole, only the item that is being read.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from factory.data.formats import limits
from factory.data.formats.encoding import text
from factory.data.formats.errorpage import refuse_page
from factory.data.formats.faults import DUPLICATE_KEY
from factory.data.formats.objects import BLANK, NotJson, Unusable, parse_at
from factory.data.formats.opened import Opened
from factory.data.row import Row
from factory.errors import BadFile

_BLANKS = re.compile(f"[{BLANK}]*")

NEAR_END = 32
"""Characters before the end of what was read within which an error may be due to the cut: the
longest thing without an end of its own is a number."""

VALUE = "value"
"""The field for the value of a keyed object that is no object itself."""

KEY_TAKEN = "field for the key is in the object"


def rows(file: Opened) -> Iterator[Row]:
    """One row per item, or the whole object."""
    refuse_page(file.stream, file.name, "JSON")
    window = _Window(file)
    first = window.peek()
    if first == "[":
        yield from _list(file, window)
    elif first == "{" and file.rows.keyed is not None:
        yield from _keyed(file, window, file.rows.keyed)
    else:
        yield _whole(file, window)


def _list(file: Opened, window: "_Window") -> Iterator[Row]:
    window.take("[")
    number = 0
    while window.peek() != "]" or number:
        number += 1
        value, bad = window.value()
        if bad is None and not isinstance(value, dict):
            raise BadFile(
                f"{file.name}, row {number}: not a JSON object but {type(value).__name__}."
            )
        yield _row(file, number, value, bad)
        if window.take(",]") == "]":
            window.end()
            return
    window.take("]")
    window.end()


def _keyed(file: Opened, window: "_Window", field: str) -> Iterator[Row]:
    window.take("{")
    number = 0
    seen: set[object] = set()
    while window.peek() != "}" or number:
        number += 1
        if window.peek() != '"':
            raise window.bad("Expecting a name in double quotes")
        key, bad_key = window.value()
        window.take(":")
        value, bad = window.value()
        bad = bad_key or bad
        held: dict[str, Any] = value if isinstance(value, dict) else {VALUE: value}
        if bad is None and field in held:
            bad = KEY_TAKEN
        if bad is None and key in seen:
            bad = DUPLICATE_KEY
        seen.add(key)
        yield _row(file, number, {field: key} | held, bad)
        if window.take(",}") == "}":
            window.end()
            return
    window.take("}")
    window.end()


def _whole(file: Opened, window: "_Window") -> Row:
    window.largest = limits.LARGEST_FILE
    value, bad = window.value()
    window.end()
    if bad is None and not isinstance(value, dict):
        raise BadFile(f"{file.name}, row 1: not a JSON object but {type(value).__name__}.")
    return _row(file, None, value, bad)


def _row(file: Opened, number: int | None, value: Any, bad: str | None) -> Row:
    if bad is not None:
        return file.bad(number, bad)
    return file.row(number, json=cast(dict[str, Any], value))


class _Window:
    """The part of a text that is being parsed: it moves on, and grows as far as a value asks."""

    def __init__(self, file: Opened) -> None:
        self.largest = limits.LARGEST_ROW
        self._name = file.name
        self._chunks = text(file)
        self._held = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self._column = 1

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            blank = _BLANKS.match(self._held, self._at)
            self._at = blank.end() if blank is not None else self._at
            if self._at < len(self._held):
                return self._held[self._at]
            if self._ended:
                return ""
            self._grow()

    def take(self, wanted: str) -> str:
        """One of these characters."""
        found = self.peek()
        if not found or found not in wanted:
            listed = " or ".join(f"'{one}'" for one in wanted)
            raise self.bad(f"Expecting {listed}")
        self._at += 1
        return found

    def value(self) -> tuple[Any, str | None]:
        """The next value, or why it cannot be a row."""
        self.peek()
        while True:
            value, bad = None, None
            try:
                value, end = parse_at(self._held, self._at)
            except Unusable as error:
                end, bad = error.end, str(error)
            except NotJson as error:
                if self._ended or not self._may_be_cut(error):
                    raise self.bad(str(error), error.position) from None
                end = len(self._held)
            if end < len(self._held) or self._ended:
                self._at = end
                return value, bad
            self._grow()  # a value that ends where the text does may go on

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise self.bad("something follows the value")

    def bad(self, reason: str, position: int | None = None) -> BadFile:
        """An error at a position of what is held, or at the next character."""
        line, column = self._place(self._at if position is None else position)
        return BadFile(f"{self._name}, line {line}, column {column}: not JSON: {reason}.")

    def _may_be_cut(self, error: NotJson) -> bool:
        near = error.position is not None and error.position > len(self._held) - NEAR_END
        return near or str(error).startswith("Unterminated string")

    def _grow(self) -> None:
        """Let go of what was parsed, and read as much again as is held."""
        self._line, self._column = self._place(self._at)
        parts = [self._held[self._at :]]
        self._at = 0
        grown = 0
        while grown <= len(parts[0]) and not self._ended:
            chunk = next(self._chunks, None)
            self._ended = chunk is None
            grown += len(chunk or "")
            parts.append(chunk or "")
        self._held = "".join(parts)
        if len(self._held) > self.largest:
            raise BadFile(
                f"{self._name}, line {self._line}: a value is longer than {self.largest:,} "
                "characters, which no row may be."
            )

    def _place(self, position: int) -> tuple[int, int]:
        """Line and column in the file of a position in what is held."""
        breaks = self._held.count("\n", 0, position)
        if not breaks:
            return self._line, self._column + position
        return self._line + breaks, position - self._held.rfind("\n", 0, position)
