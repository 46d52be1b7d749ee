"""Samples: what `clean` returns, one per row of the source, or a reason for having none.

A sample has the same common fields whatever its kind, and one content that depends on the kind:
those are in `kinds`. How samples lie in Parquet is in `table`; how rows of a source are read is in
`row`; how conversations in other forms become messages is in `chat`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from factory.data.chat.rules import verified
from factory.data.images.image import Image
from factory.data.kinds import (
    CONTENTS,
    KINDS,
    Content,
    Conversation,
    Document,
    ImageText,
    Kind,
    Message,
    Picture,
    Question,
    Section,
)
from factory.data.licence import is_spdx
from factory.data.parts import Given, parts_of, refuse_text, require_string, require_text
from factory.errors import BadRow

ERROR = "error: "
"""How the reason of a row starts on which `clean` raised."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why a row gives no sample. Reasons are counted, so keep them few and constant."""

    reason: str

    def __post_init__(self) -> None:
        require_text("reason", self.reason)
        self.reason.encode()  # text that is no Unicode is an error of the row
        if self.reason.startswith(ERROR):
            raise ValueError(f"a reason may not start with {ERROR!r}, which marks exceptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One training sample. Make it with the method that has the name of its kind."""

    id: str
    """Unique in its dataset."""

    content: Content
    group: str = ""
    """Samples of one group land in one split; `clean` fills it with the id where it is empty."""

    source: str = ""
    """Key of the dataset; filled by the `clean` step."""

    license: str = ""
    """SPDX id; the licence of the dataset where the row states none."""

    meta: Mapping[str, str] = field(default_factory=dict[str, str])

    images: Mapping[str, Image] = field(default_factory=dict[str, Image], compare=False, repr=False)
    """The images that the content names, by hash, until the `clean` step has stored them."""

    def __post_init__(self) -> None:
        require_text("id", self.id)
        for name, value in (("group", self.group), ("license", self.license)):
            require_string(name, value)
        if self.license and not is_spdx(self.license):
            raise BadRow("license is no SPDX expression")
        if type(self.content) not in KINDS:
            raise TypeError(f"content is {type(self.content).__name__}, no kind of sample")
        if isinstance(self.content, Conversation):
            verified(self.content.messages)
        for name, value in self.meta.items():
            require_string("a name in meta", name)
            require_string(f"meta[{name!r}]", value)

    @property
    def kind(self) -> Kind:
        """Name of the content's type, and of its column in Parquet."""
        return KINDS[type(self.content)]

    @property
    def characters(self) -> int:
        """Characters of the content, all text in it added up."""
        return sum(map(len, self.content.texts))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The images that the content names, in order."""
        content = self.content
        return content.pictures if isinstance(content, Conversation | ImageText) else ()

    @staticmethod
    def document(
        *,
        id: str,  # noqa: A002  the name of the field
        title: str,
        sections: Iterable[tuple[str, str]],
        license: str = "",  # noqa: A002
        group: str = "",
        meta: Mapping[str, str] | None = None,
    ) -> "Sample":
        """A document from `(heading, text)` pairs; a pair without text is an error."""
        content = Document(title, tuple(Section(heading, text) for heading, text in sections))
        return Sample(id=id, content=content, group=group, license=license, meta=meta or {})

    @staticmethod
    def question(  # noqa: PLR0913  every one is keyword-only
        *,
        id: str,  # noqa: A002  the name of the field
        question: str,
        answer: str,
        options: Sequence[str] = (),
        explanation: str | None = None,
        license: str = "",  # noqa: A002
        group: str = "",
        meta: Mapping[str, str] | None = None,
    ) -> "Sample":
        """A question with its answer; neither may be empty."""
        refuse_text("options", options)
        content = Question(question, answer, tuple(options), explanation)
        return Sample(id=id, content=content, group=group, license=license, meta=meta or {})

    @staticmethod
    def conversation(
        *,
        id: str,  # noqa: A002  the name of the field
        messages: Iterable[Message],
        tools: str | None = None,
        license: str = "",  # noqa: A002
        group: str = "",
        meta: Mapping[str, str] | None = None,
    ) -> "Sample":
        """A conversation from messages; `tools` is the JSON text of the functions declared.

        Raises:
            BadRow: the messages are no conversation, see `chat.rules`.
        """
        content = Conversation(tuple(messages), tools)
        made = Sample(id=id, content=content, group=group, license=license, meta=meta or {})
        return replace(made, images=_images(content.pictures))

    @staticmethod
    def image_text(
        *,
        id: str,  # noqa: A002  the name of the field
        parts: Iterable[Given],
        license: str = "",  # noqa: A002
        group: str = "",
        meta: Mapping[str, str] | None = None,
    ) -> "Sample":
        """Images and text in order, each given as it is: `parts=[image, "A caption."]`."""
        content = ImageText(parts_of(parts))
        made = Sample(id=id, content=content, group=group, license=license, meta=meta or {})
        return replace(made, images=_images(content.pictures))

    def as_dict(self) -> dict[str, Any]:
        """The sample as JSON has it, in every place where samples are written as JSON."""
        return {
            "id": self.id,
            "group": self.group,
            "kind": self.kind,
            "source": self.source,
            "license": self.license,
            "meta": dict(self.meta),
            self.kind: self.content.as_dict(),
        }

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Sample":
        """The inverse of `as_dict`."""
        kind: Kind = value["kind"]
        return Sample(
            id=value["id"],
            content=CONTENTS[kind].from_dict(value[kind]),
            group=value["group"],
            source=value["source"],
            license=value["license"],
            meta=dict(value["meta"]),
        )


_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def canonical(value: Mapping[str, Any]) -> bytes:
    """A value as one line of JSON that is the same wherever it is made."""
    return _CANONICAL.encode(value).encode()


def _images(pictures: Iterable[Picture]) -> dict[str, Image]:
    return {one.image: one.data for one in pictures if one.data is not None}
