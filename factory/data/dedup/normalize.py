"""Text to the code points that are compared: NFKC, then case folding, documents joined.

Defined once and used by every pass: two passes that normalize differently miss real copies
("5.3" against "53" costs one point of recall). Which code points matter is in `characters.py`.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.characters import DROPPED, classes, classify

BOUNDARY = "\n"
"""Between documents; a separator, so that no word reaches from one document into the next."""


_ASCII = bytes(classify(chr(code)) for code in range(128)).ljust(256, b"\0")
"""The class of each ASCII character, none of which is dropped."""


def fold(text: str) -> str:
    """The normalized form of a text."""
    if text.isascii():
        return text.lower()
    # Folding can undo the composition (and the other way round), hence twice.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def codes(folded: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.int64]]:
    """Code points of the documents in one array, their classes, and where each document ends.

    Dropped characters are gone; document i ends before `ends[i]`, which holds a boundary.
    """
    joined = BOUNDARY.join(folded) + BOUNDARY
    lengths = np.fromiter(map(len, folded), dtype=np.int64, count=len(folded))
    ends = np.cumsum(lengths + 1) - 1
    if joined.isascii():
        ascii_bytes = joined.encode("ascii")
        kinds = np.frombuffer(ascii_bytes.translate(_ASCII), dtype=np.uint8)
        return np.frombuffer(ascii_bytes, dtype=np.uint8), kinds, ends
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = classes(points)
    dropped = kinds == DROPPED
    if dropped.any():
        ends -= np.cumsum(dropped)[ends]
        points, kinds = points[~dropped], kinds[~dropped]
    return points, kinds, ends
