"""Parts of which messages and image texts consist, and what a text must be to be one.

What is made of them is in `kinds`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from factory.data.images.image import Image

_SEEN = re.compile("[^\\s\x00-\x1f\x7f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""A character that is more than space: not white, no control, none of zero width."""

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Text:
    """A run of text in a message, or between images."""

    text: str

    def __post_init__(self) -> None:
        require_string("text of a part", self.text)


@dataclass(frozen=True, slots=True)
class Picture:
    """The place of an image; the image itself is stored once, under its hash."""

    image: str
    """SHA-256 of the stored bytes."""

    data: Image | None = field(default=None, compare=False, repr=False)
    """The image, while the sample is on its way into the dataset."""

    def __post_init__(self) -> None:
        if not isinstance(self.image, str) or not _HASH.fullmatch(self.image):  # pyright: ignore[reportUnnecessaryIsInstance]  written by hand
            raise ValueError("an image is named by its SHA-256, 64 lower-case digits")


type Part = Text | Picture
type Given = str | Image | Part
"""What may be written for a part: text and images as they are."""


def parts_of(given: Given | Iterable[Given]) -> tuple[Part, ...]:
    """Parts from what was written; runs of text without any character say nothing and are none."""
    single = isinstance(given, str | Image | Text | Picture)
    found = (_part(one) for one in ([given] if single else given))
    return tuple(one for one in found if isinstance(one, Picture) or one.text)


def _part(given: object) -> Part:
    match given:
        case str():
            return Text(given)
        case Image():
            return Picture(given.sha256, given)
        case Text() | Picture():
            return given
        case _:
            raise TypeError(f"a part is {type(given).__name__}, neither text nor an image")


def seen(text: str) -> bool:
    """Whether a text has a character that a reader sees."""
    return _SEEN.search(text) is not None


def require_string(name: str, value: object) -> None:
    """Raise TypeError for what is no text; sources are written by hand."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, not a string")


def require_text(name: str, value: object) -> None:
    """Raise ValueError for a text in which there is nothing to read."""
    require_string(name, value)
    if not seen(str(value)):
        raise ValueError(f"{name} is empty")


def refuse_text(name: str, value: object) -> None:
    """Raise TypeError for a text in the place of several: it is a list of its letters to Python."""
    if isinstance(value, str):
        raise TypeError(f"{name} is one text, not a list of texts")


def pictures_in(parts: Iterable[Part]) -> Iterator[Picture]:
    """The images among the parts."""
    return (part for part in parts if isinstance(part, Picture))


def parts_as_dicts(parts: Iterable[Part]) -> list[dict[str, str | None]]:
    """Parts as JSON: one of the two fields is set."""
    return [
        {"text": one.text, "image": None}
        if isinstance(one, Text)
        else {"text": None, "image": one.image}
        for one in parts
    ]


def parts_from_dicts(values: Iterable[Mapping[str, Any]]) -> tuple[Part, ...]:
    """The inverse of `parts_as_dicts`."""
    return tuple(
        Text(one["text"]) if one["image"] is None else Picture(one["image"]) for one in values
    )
