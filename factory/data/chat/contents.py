"""The content of a message: text, or a list of typed parts.

Parts are texts, images as `data:` addresses, the reasoning of a model, and calls of tools. Text
lies under `text` or `value`. An image elsewhere is never fetched: its row is rejected.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from factory.data.chat.calls import calls_in
from factory.data.images import Images
from factory.data.images.image import Image
from factory.data.kinds import ToolCall
from factory.errors import BadRow

type Reasoning = Literal["refuse", "think", "leave out"]
"""What becomes of a model's reasoning: the row is rejected, the reasoning stays as text between
`<think>` and `</think>`, or the declaration says that it is not wanted."""

TEXTS = frozenset({"text", "input_text", "output_text"})
IMAGES = frozenset({"image_url", "input_image"})
REASONINGS = frozenset({"reasoning", "thinking"})
CALLS = frozenset({"tool_call", "function_call"})


@dataclass(slots=True)
class Spoken:
    """What a turn says, and what it calls."""

    parts: list[str | Image] = field(default_factory=list[str | Image])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])


@dataclass(frozen=True, slots=True)
class Contents:
    """Reads contents, by what the declaration says about reasoning and images."""

    reasoning: Reasoning = "refuse"
    images: Images | None = None

    def read(self, content: object) -> Spoken:
        """What a content says; None says nothing.

        Raises:
            BadRow: a part of it is of an unknown type or form.
        """
        spoken = Spoken()
        if content is None:
            return spoken
        if isinstance(content, str):
            spoken.parts.append(content)
            return spoken
        if not isinstance(content, list):
            raise BadRow("content is neither text nor a list of parts")
        for part in cast("Iterable[object]", content):
            self._add(part, spoken)
        return spoken

    def thought(self, text: object) -> list[str]:
        """A model's reasoning as text, where it is wanted.

        Raises:
            BadRow: nothing is declared about reasoning, or it is no text.
        """
        if not isinstance(text, str):
            raise BadRow("reasoning is not text")
        if self.reasoning == "refuse":
            raise BadRow("reasoning in a turn")
        return [f"<think>\n{text}\n</think>\n\n"] if self.reasoning == "think" else []

    def _add(self, part: object, spoken: Spoken) -> None:
        if isinstance(part, str):
            spoken.parts.append(part)
            return
        if not isinstance(part, Mapping):
            raise BadRow("a part is neither text nor an object")
        fields = cast("Mapping[str, Any]", part)
        kind = str(fields.get("type"))
        if kind in TEXTS:
            spoken.parts.append(_text(fields))
        elif kind in IMAGES:
            spoken.parts.append(self._image(fields.get("image_url")))
        elif kind in REASONINGS:
            spoken.parts += self.thought(fields.get("value", fields.get(kind)))
        elif kind in CALLS:
            spoken.calls += calls_in(fields.get("value"))
        else:
            raise BadRow("a part of an unknown type")

    def _image(self, value: object) -> Image:
        given = cast("Mapping[str, Any]", value).get("url") if isinstance(value, Mapping) else value
        if not isinstance(given, str) or not given.startswith("data:"):
            raise BadRow("image outside the row")
        if self.images is None:
            raise BadRow("an image, and the dataset declares nothing about images")
        head, _, body = given.partition(",")
        if not head.endswith(";base64"):
            raise BadRow("image is not base64")
        try:
            data = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise BadRow("image is not base64") from None
        from factory.data.images.pictures import decode

        return decode(data, self.images.max_pixels)


def _text(fields: Mapping[str, Any]) -> str:
    text = fields.get("text", fields.get("value"))
    if not isinstance(text, str):
        raise BadRow("a text part without text")
    return text
