"""Tokens: how long texts are for a model, counted with Tekken as mistral-common ships it.

The vocabulary is read from the installed package, so nothing is fetched. A recipe has a tokenizer
of its own; this one makes datasets comparable. What is counted of a sample is in `statistics`.
"""

import base64
import functools
import importlib.util
import json
import re
from collections.abc import Iterable
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
    return sum(len(encode(piece)) for piece in pieces(text))


def load() -> None:
    """Read the vocabulary now, half a second, rather than with the first text."""
    _encoding()


def pieces(text: str) -> Iterable[str]:
    """The text, cut where the splitter could not bear it whole."""
    if len(text) < RUN:
        return (text,)
    cuts = [0, *(found.end() for found in _RUNS.finditer(text)), len(text)]
    return (text[start:end] for start, end in pairwise(cuts))


def encoding(path: Path) -> "tiktoken.Encoding":
    """A tokenizer of Tekken's form, without its special tokens, whose ids come before."""
    import tiktoken

    file = json.loads(path.read_bytes())
    config: dict[str, Any] = file["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(one["token_bytes"]): one["rank"] for one in file["vocab"][:size]}
    return tiktoken.Encoding(
        path.stem, pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}
    )


def file() -> Path:
    """Where the installed package has the vocabulary."""
    return _package() / "data" / f"{TOKENIZER}.json"


@functools.cache
def _encoding() -> "tiktoken.Encoding":
    return encoding(file())


def _package() -> Path:
    """The folder of mistral-common, found without importing what it needs."""
    found = importlib.util.find_spec("mistral_common")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("mistral_common is not installed; `scripts/setup` installs it")
    return Path(found.origin).parent
