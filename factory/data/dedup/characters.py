"""Characters sorted into four classes: what separates, what makes words, what is a token alone.

Letters, combining marks and numbers of every script make words. Scripts written without spaces
(Han, kana, Thai, Khmer, ...) have no words to find without a dictionary, so each of their
characters is a token. Format characters (soft hyphen, zero-width ones) are invisible and dropped.
"""

import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEPARATOR, WORD, ALONE, DROPPED = 0, 1, 2, 3
_UNKNOWN = 255

_WITHOUT_SPACES = (
    "BALINESE ",
    "BOPOMOFO ",
    "CJK ",
    "HIRAGANA ",
    "IDEOGRAPHIC ",
    "JAVANESE ",
    "KATAKANA ",
    "KATAKANA-HIRAGANA ",
    "KHMER ",
    "LAO ",
    "MYANMAR ",
    "NEW TAI LUE ",
    "TAI ",
    "THAI ",
    "YI ",
)
"""First words of Unicode character names."""


def classify(character: str) -> int:
    """The class of one character."""
    category = unicodedata.category(character)
    if category == "Cf":
        return DROPPED
    if category[0] not in "LMN":
        return SEPARATOR
    if category[0] != "N" and unicodedata.name(character, "").startswith(_WITHOUT_SPACES):
        return ALONE
    return WORD


class _Table:
    """Classes by code point, filled in as they are first seen: there are 1,114,112 of them."""

    def __init__(self, function: Callable[[str], int]) -> None:
        self._function = function
        self._classes = np.full(0x110000, _UNKNOWN, dtype=np.uint8)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.uint8]:
        classes = self._classes.take(codes)
        if classes.size and classes.max() == _UNKNOWN:
            for code in np.unique(codes[classes == _UNKNOWN]).tolist():
                self._classes[code] = self._function(chr(code))
            classes = self._classes.take(codes)
        return classes


classes = _Table(classify)
"""The class of each code point of an array (bytes of ASCII text are code points too)."""
