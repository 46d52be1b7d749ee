"""`Run`: a stretch of a rendered sample of which all is of one kind and carries loss or not.

A rendering is a list of runs. What the runs say, one behind the other, is the text that the model
reads; which of it came from the sample and which from the template is known of every character.
So special tokens are only made where a template writes them, never out of a sample's own text.
Renderings are made in `plain`, `qwen` and `qwen35`, and become tokens in `align`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

type Origin = Literal["markup", "content", "data", "image", "begin", "end"]
"""`markup` is the template's own, special tokens included. `content` and `data` are the sample's:
content is prose that a long sample may be cut in, data (calls, declarations) is not. `begin` and
`end` are the edges of a sample, which some tokenizers have no token for."""


class Run(NamedTuple):
    """Text, or the place of an image."""

    origin: Origin
    text: str = ""
    """Of an image: how the template writes it, which is not necessarily how it is encoded."""

    loss: bool = False
    image: str | None = None
    """SHA-256 of the image."""

    opens: bool = False
    """Whether a turn begins here, so that a long sample may be cut before it."""


def text_of(runs: Iterable[Run]) -> str:
    """What the runs say."""
    return "".join(run.text for run in runs)


def runs_of(
    parts: Iterable[Mapping[str, str | None]], loss: bool, placeholder: str
) -> Iterator[Run]:
    """The parts of a message, or of text with images; an image never carries loss."""
    for part in parts:
        if part["image"] is None:
            yield Run("content", part["text"] or "", loss)
        else:
            yield Run("image", placeholder, image=part["image"])


def said(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether there is anything in the parts."""
    return any(part["image"] is not None or part["text"] for part in parts)
