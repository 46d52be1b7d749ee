"""Tokens: how long texts are for a model, counted with Tekken as mistral-common ships it.

The vocabulary is read from the installed package, so nothing is fetched. A recipe has a tokenizer
of its own; this one makes datasets comparable. What is counted of a sample is in `statistics`.
"""

import base64
import functools
import importlib.util
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tiktoken

TOKENIZER = "tekken_240911"

RUN = 50_000
"""Spaces in a row, above which a text is cut: at ten times as many the splitter's stack is full."""

_RUNS = re.compile(rf"\s{{{RUN}}}")


def count(text: str) -> int:
    """Tokens of a text, without any that mark its beginning, its end or a role."""
    encode = _encoding().encode_ordinary
    if len(text) < RUN:
        return len(encode(text))
    return sum(len(encode(piece)) for piece in _pieces(text))


def load() -> None:
    """Read the vocabulary now, half a second, rather than with the first text."""
    _encoding()


def _pieces(text: str) -> Iterator[str]:
    cuts = [0, *(found.end() for found in _RUNS.finditer(text)), len(text)]
    return (text[start:end] for start, end in pairwise(cuts))


@functools.cache
def _encoding() -> "tiktoken.Encoding":
    import tiktoken

    file = json.loads((_package() / "data" / f"{TOKENIZER}.json").read_bytes())
    config: dict[str, Any] = file["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(one["token_bytes"]): one["rank"] for one in file["vocab"][:size]}
    return tiktoken.Encoding(
        TOKENIZER, pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}
    )


def _package() -> Path:
    """The folder of mistral-common, found without importing what it needs."""
    found = importlib.util.find_spec("mistral_common")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("mistral_common is not installed; `scripts/setup` installs it")
    return Path(found.origin).parent
