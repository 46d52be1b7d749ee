"""`Tokenizer`: text to token ids and back, whatever the files are that it was read from.

A codec knows text alone: `<|im_end|>` in it is ten characters like any other. The ids of special
tokens are beside it, for what templates write. Codecs are in `byte_level`, `hugging_face`, `tekken`
and `sentence_piece`; `load` finds the right one. Nothing is ever fetched.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding.template import ChatTemplate
from factory.data.sample import canonical

FORM = 1
"""Of the identity: a change of what texts become, with equal files, is another form."""


class Coded(Protocol):
    """A text in tokens."""

    @property
    def ids(self) -> Sequence[int]:
        """The tokens."""
        ...

    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first character of every token, and the one behind its last; slower than `ids`.

        Where tokens share a character, each spans the whole of it.
        """
        ...


class Codec(Protocol):
    """What turns text into tokens."""

    def encode(self, texts: Sequence[str]) -> Sequence[Coded]:
        """The texts, all of which have a UTF-8 form, in tokens; no token is special."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        ...


class ImageTokens(NamedTuple):
    """What stands for an image."""

    ids: tuple[int, ...]
    pad: int
    """Which of them is repeated for every patch that the model sees."""


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """A codec with its special tokens, its chat template, and what identifies all of it."""

    name: str
    codec: Codec
    size: int
    """Above the highest id."""

    end: int
    """Ends a document."""

    begin: int | None = None
    """Begins a document, where the model expects one."""

    special: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that only templates write."""

    image: ImageTokens | None = None
    """None where the model sees no images."""

    template: ChatTemplate | None = None
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """SHA-256 of each file that decides what a text becomes."""

    @cached_property
    def identity(self) -> str:
        """Equal for tokenizers that make the same tokens of the same conversations."""
        template = self.template and {"source": self.template.source, **self.template.tokens}
        return hashlib.sha256(
            canonical(
                {
                    "form": FORM,
                    "files": dict(self.files),
                    "begin": self.begin,
                    "end": self.end,
                    "image": self.image,
                    "template": template,
                }
            )
        ).hexdigest()

    def encode(self, texts: Sequence[str]) -> Sequence[Coded]:
        """The texts in tokens; a lone surrogate, which has no UTF-8 form, becomes `?`."""
        return self.codec.encode([_utf8(text) for text in texts])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        return self.codec.decode(ids)

    def markup(self, text: str) -> Iterator[str | int]:
        """Text of a template, and the ids of the special tokens in it."""
        if self._special is None:
            yield text
            return
        for at, piece in enumerate(self._special.split(text)):
            if at % 2:
                yield self.special[piece]
            elif piece:
                yield piece

    @cached_property
    def _special(self) -> re.Pattern[str] | None:
        if not self.special:
            return None
        # Longest first, so that none hides behind its own beginning.
        tokens = sorted(self.special, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, tokens))})")


def byte_spans(
    text: bytes, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spans in characters of tokens that are so many bytes of a text in UTF-8."""
    stops = np.cumsum(lengths)
    starts = stops - lengths
    if text.isascii():
        return starts, stops
    values = np.frombuffer(text, dtype=np.uint8)
    character = np.cumsum((values & 0xC0) != 0x80) - 1
    return character[starts], character[stops - 1] + 1


def _utf8(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
