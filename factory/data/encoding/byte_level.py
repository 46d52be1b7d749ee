"""The byte-level tokenizer of small models and tests: a token for each byte of UTF-8.

Every text can be written in it and nothing is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding.tokenizer import ImageTokens, Tokenizer, byte_spans

NAME = "bytes"

BYTES = 256
BEGIN, END = 257, 258
"""Behind the bytes, and a place that is kept for padding."""

VOCABULARY_SIZE = 259

IMAGE = "<image>"
"""What stands in a text for an image, which bytes of text cannot show."""


@dataclass(frozen=True, slots=True)
class _Coded:
    text: bytes

    @property
    def ids(self) -> Sequence[int]:
        return list(self.text)

    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return byte_spans(self.text, np.ones(len(self.text), dtype=np.int64))


class _Bytes:
    def encode(self, texts: Sequence[str]) -> Sequence[_Coded]:
        return [_Coded(text.encode()) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text; special tokens have no text, and bytes that are no UTF-8 are replaced."""
        return bytes(one for one in ids if one < BYTES).decode(errors="replace")


def read() -> Tokenizer:
    """The tokenizer. An image is a word of it, since nothing that reads bytes sees one."""
    return Tokenizer(
        name=NAME,
        codec=_Bytes(),
        size=VOCABULARY_SIZE,
        begin=BEGIN,
        end=END,
        image=ImageTokens(tuple(IMAGE.encode()), pad=0),
        files={NAME: f"{VOCABULARY_SIZE}"},
    )
