"""Tekken: the tokenizers that mistral-common ships as one JSON file."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factory.data import tokens
from factory.data.encoding.tokenizer import Tokenizer, byte_spans
from factory.errors import SpecError

if TYPE_CHECKING:
    import tiktoken

_BEGIN, _END = 1, 2
"""`<s>` and `</s>`: the ids of special tokens come first, and these two are fixed."""


@dataclass(frozen=True, slots=True)
class _Coded:
    text: str
    ids: Sequence[int]
    lengths: NDArray[np.int64]

    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return byte_spans(self.text.encode(), self.lengths[np.array(self.ids, dtype=np.int64)])


@dataclass(frozen=True)
class _Tekken:
    encoding: "tiktoken.Encoding"
    specials: int

    def encode(self, texts: Sequence[str]) -> Sequence[_Coded]:
        return [_Coded(text, self._ids(text), self._lengths) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text; special tokens have none."""
        return self.encoding.decode([one - self.specials for one in ids if one >= self.specials])

    def _ids(self, text: str) -> list[int]:
        encode, first = self.encoding.encode_ordinary, self.specials
        return [first + one for piece in tokens.pieces(text) for one in encode(piece)]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """Bytes of every token."""
        value = self.encoding.decode_single_token_bytes
        lengths = [len(value(token)) for token in range(self.encoding.n_vocab)]
        return np.array([0] * self.specials + lengths, dtype=np.int64)


def read(file: Path) -> Tokenizer:
    """The tokenizer in a file.

    Raises:
        SpecError: it is none.
    """
    content = file.read_bytes()
    try:
        config = json.loads(content)["config"]
        specials, size = config["default_num_special_tokens"], config["default_vocab_size"]
        encoding = tokens.encoding(file)
    except (ValueError, KeyError, TypeError) as error:
        raise SpecError(f"{file} is no tokenizer of Tekken's form: {error!r}.") from error
    return Tokenizer(
        name=file.stem,
        codec=_Tekken(encoding, specials),
        size=size,
        begin=_BEGIN,
        end=_END,
        files={file.name: hashlib.sha256(content).hexdigest()},
    )
