"""Tokenizers of Hugging Face: a directory with `tokenizer.json`, as models are published with.

Read are `tokenizer.json`, the roles of tokens in `tokenizer_config.json`, and the chat template,
which lies in one of three places. A token counts as special if the file says so; others that were
added (`<think>`, `<tool_call>`) are vocabulary: they are made of any text, as inference does it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding.template import ChatTemplate
from factory.data.encoding.tokenizer import ImageTokens, Tokenizer
from factory.errors import SpecError

if TYPE_CHECKING:
    import tokenizers

FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
TEMPLATE_IN_JSON = "chat_template.json"

END_OF_TEXT = "<|endoftext|>"
"""Ends a document where it exists; what ends a turn (`eos_token` of a chat model) does not."""

VISION = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")

_ROLES = ("bos_token", "eos_token", "unk_token", "pad_token")


@dataclass(frozen=True, slots=True)
class _Coded:
    encoding: "tokenizers.Encoding"

    @property
    def ids(self) -> Sequence[int]:
        return self.encoding.ids

    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = np.array(self.encoding.offsets, dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]


@dataclass(frozen=True, slots=True)
class Fast:
    """A tokenizer of the package `tokenizers`, which takes special tokens in a text for text."""

    tokenizer: "tokenizers.Tokenizer"

    def encode(self, texts: Sequence[str]) -> Sequence[_Coded]:
        """The texts in tokens; the package spreads many texts over its threads."""
        found = cast(
            "list[tokenizers.Encoding]",
            self.tokenizer.encode_batch(texts, add_special_tokens=False),
        )
        return [_Coded(one) for one in found]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        return self.tokenizer.decode(ids, skip_special_tokens=False)


def read(folder: Path, end: str | None = None) -> Tokenizer:
    """The tokenizer in a directory; `end` names the token that ends a document.

    Raises:
        SpecError: a file is missing or is not what it should be, or no token ends a document.
    """
    content = _bytes(folder, FILE)
    if content is None:
        found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise SpecError(
            f"The tokenizer in {folder} has no {FILE}; there is {found}. Copy the model's own "
            "tokenizer files there: nothing is fetched when a run starts."
        )
    described = _json(content, folder / FILE)
    config = _config(folder)
    tokens = {name: text for name in _ROLES if (text := _content(config.get(name)))}
    fast, begin = _fast(described, folder / FILE)
    special = {
        one["content"]: one["id"] for one in described.get("added_tokens") or () if one["special"]
    }
    return Tokenizer(
        name=folder.name,
        codec=Fast(fast),
        size=_size(fast),
        begin=begin,
        end=_end(fast, end, tokens, folder),
        special=special,
        image=_image(special),
        template=_template(folder, config, tokens),
        files={FILE: hashlib.sha256(content).hexdigest()},
    )


def _fast(described: dict[str, Any], file: Path) -> tuple["tokenizers.Tokenizer", int | None]:
    """The tokenizer without what it would add or cut off, and what it would begin a text with."""
    import tokenizers

    described = described | {"truncation": None, "padding": None}
    processor = described.get("post_processor")
    try:
        fast = tokenizers.Tokenizer.from_str(json.dumps(described | {"post_processor": None}))
        edges = tokenizers.Tokenizer.from_str(
            json.dumps({**_EMPTY, "post_processor": processor})
        ).encode("")
    except Exception as error:  # the package raises nothing narrower
        raise SpecError(f"{file} is no tokenizer that can be read: {error}") from error
    fast.encode_special_tokens = True
    return fast, edges.ids[0] if edges.ids else None


def _size(fast: "tokenizers.Tokenizer") -> int:
    ids = cast("dict[str, int]", fast.get_vocab(with_added_tokens=True))
    return max(ids.values()) + 1


_EMPTY: Mapping[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""},
}
"""A tokenizer that knows no word: what it makes of an empty text, its post-processor has added."""


def _end(
    fast: "tokenizers.Tokenizer", end: str | None, tokens: Mapping[str, str], folder: Path
) -> int:
    known = [end] if end is not None else [END_OF_TEXT, tokens.get("eos_token")]
    for token in known:
        found = fast.token_to_id(token) if token else None
        if found is not None:
            return found
    if end is not None:
        raise SpecError(f"The tokenizer in {folder} has no token {end!r} to end a document with.")
    raise SpecError(
        f"The tokenizer in {folder} does not say what ends a document: it has no {END_OF_TEXT} "
        f"and no eos_token in {CONFIG}. Name one of its tokens with end=."
    )


def _image(special: Mapping[str, int]) -> ImageTokens | None:
    if not all(token in special for token in VISION):
        return None
    return ImageTokens(tuple(special[token] for token in VISION), pad=1)


def _template(
    folder: Path, config: Mapping[str, Any], tokens: Mapping[str, str]
) -> ChatTemplate | None:
    """The template, from the place that comes first for transformers."""
    named = {name: text for name, text in tokens.items() if name != "unk_token"}
    source = _bytes(folder, TEMPLATE)
    if source is not None:
        return ChatTemplate(source.decode(), str(folder / TEMPLATE), named)
    in_json = _bytes(folder, TEMPLATE_IN_JSON)
    places: list[tuple[str, Any]] = [(CONFIG, config.get("chat_template"))]
    if in_json is not None:
        place = folder / TEMPLATE_IN_JSON
        places.append((TEMPLATE_IN_JSON, _json(in_json, place).get("chat_template")))
    for place, found in places:
        if text := _default(found):
            return ChatTemplate(text, str(folder / place), named)
    return None


def _default(found: Any) -> str | None:
    """The template for plain chat, where there are several by name."""
    if isinstance(found, list):
        named: dict[str, str] = {one["name"]: one["template"] for one in found}
        return named.get("default")
    return found


def _config(folder: Path) -> dict[str, Any]:
    content = _bytes(folder, CONFIG)
    return {} if content is None else _json(content, folder / CONFIG)


def _json(content: bytes, file: Path) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError as error:
        raise SpecError(f"{file} is not JSON ({error}). Copy it again.") from error
    if not isinstance(found, dict):
        raise SpecError(f"{file} is JSON of another kind than a tokenizer's. Copy it again.")
    return found


def _bytes(folder: Path, name: str) -> bytes | None:
    file = folder / name
    return file.read_bytes() if file.is_file() else None


def _content(token: Any) -> str | None:
    """A token in the configuration: its text, or what describes it."""
    return token.get("content") if isinstance(token, dict) else token
