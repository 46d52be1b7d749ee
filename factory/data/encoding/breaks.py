"""Where prose may be cut: before paragraphs, and between sentences, in any script."""

import re

import numpy as np
from numpy.typing import NDArray

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_CLOSING = "\"'\u201d\u2019\u00bb)\\]"
_FULL_WIDTH = "\u3002\uff01\uff1f"
_SENTENCE = re.compile(rf"[.!?\u2026][{_CLOSING}]*(?=\s)|[{_FULL_WIDTH}]|\n")


def paragraphs(text: str) -> NDArray[np.int64]:
    """First characters of paragraphs after the first."""
    return np.array([found.end() for found in _PARAGRAPH.finditer(text)], dtype=np.int64)


def sentences(text: str) -> NDArray[np.int64]:
    """Characters behind sentences and lines; the space between belongs to the next one.

    An abbreviation looks like the end of a sentence: a cut there is no worse than one in a word.
    """
    return np.array([found.end() for found in _SENTENCE.finditer(text)], dtype=np.int64)
