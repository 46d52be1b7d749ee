"""Text as recognizers read it: ASCII digits, dashes and spaces, nothing invisible.

A number in full-width or Arabic digits, with a non-breaking hyphen or a zero-width space inside it,
is the same number. Positions lead back to the text as delivered.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_RULE = re.compile(r"([^\w\s])\1{39,}")


@dataclass(frozen=True, slots=True)
class NormalText:
    """A text and where each of its characters stood."""

    text: str
    _positions: tuple[int, ...] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the delivered text that a part of this one stands for."""
        if self._positions is None or start >= end:
            return start, end
        return self._positions[start], self._positions[end - 1] + 1

    def __repr__(self) -> str:
        return f"NormalText({len(self.text)} characters)"


def normal(text: str) -> NormalText:
    """Read a text as recognizers should."""
    if text.isascii():
        return NormalText(_without_rules(text), None)
    letters: list[str] = []
    positions: list[int] = []
    for position, letter in enumerate(text):
        for plain in _plain(letter):
            letters.append(plain)
            positions.append(position)
    return NormalText(_without_rules("".join(letters)), tuple(positions))


def _without_rules(text: str) -> str:
    """Blank out lines drawn with one sign: some expressions take a square of their length."""
    return _RULE.sub(lambda match: " " * len(match[0]), text)


@lru_cache(maxsize=4096)
def _plain(letter: str) -> str:
    if letter.isascii():
        return letter
    category = unicodedata.category(letter)
    if category == "Nd":
        return str(unicodedata.decimal(letter))
    if category == "Pd" or letter == "\N{MINUS SIGN}":
        return "-"
    if category == "Zs":
        return " "
    if category in ("Zl", "Zp"):
        return "\n"
    if category == "Cf":
        return ""
    if category == "Cs":  # half a character, which no encoding can write
        return "\N{REPLACEMENT CHARACTER}"
    return unicodedata.normalize("NFKC", letter)
