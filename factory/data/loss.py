"""`Loss`: which roles and parts of a dataset's samples a model learns to write.

`clean` fills `trained` of each turn from it, where the row does not say. The rest is applied when
samples become tokens: the policy lies beside the shards, as `loss.json`. Images never carry loss.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from factory.data.kinds import ROLES, Conversation, Kind
from factory.data.sample import Sample, canonical
from factory.errors import DeclarationError

FILE = "loss.json"

PARTS: Mapping[Kind, tuple[str, ...]] = {
    "document": ("title", "sections"),
    "question": ("question", "options", "answer", "explanation"),
    "conversation": ROLES,
    "image_text": ("text",),
}
"""What can carry loss, by kind of sample. A section is its heading and its text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """What carries loss, by kind of sample: a dataset uses those of the kinds that it has."""

    document: Collection[str] = ("title", "sections")
    question: Collection[str] = ("answer", "explanation")
    """Parts of a question: `question`, `options`, `answer`, `explanation`."""

    conversation: Collection[str] = ("assistant",)
    """Roles whose turns carry loss. A row that says so of a turn itself is believed."""

    tool_calls: bool = True
    """Whether the calls of a turn that carries loss carry it as well."""

    image_text: Collection[str] = ("text",)
    """The text between images, captions; or nothing."""

    def __post_init__(self) -> None:
        for kind, known in PARTS.items():
            _check(kind, getattr(self, kind), known)
        calls = getattr(self, "tool_calls")  # noqa: B009  written by hand, so perhaps no bool
        if calls not in (True, False):
            raise DeclarationError(f"loss: tool_calls is {calls!r}; write True or False.")

    def as_dict(self) -> dict[str, Any]:
        """The policy as JSON, the same in whatever order parts were named."""
        parts = {
            kind: [part for part in known if part in getattr(self, kind)]
            for kind, known in PARTS.items()
        }
        return parts | {"tool_calls": self.tool_calls}

    def to_json(self) -> bytes:
        """The policy as it lies beside the shards."""
        return canonical(self.as_dict()) + b"\n"

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        parts = {kind: tuple(value[kind]) for kind in PARTS}
        return cls(tool_calls=value["tool_calls"], **parts)


def filled(sample: Sample, policy: Loss) -> Sample:
    """The sample with `trained` set on every turn: as its row says, else by its role."""
    content = sample.content
    if not isinstance(content, Conversation):
        return sample
    messages = (
        replace(message, trained=message.role in policy.conversation)
        if message.trained is None
        else message
        for message in content.messages
    )
    return replace(sample, content=replace(content, messages=tuple(messages)))


def _check(kind: str, given: object, known: tuple[str, ...]) -> None:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise DeclarationError(
            f"loss: {kind} is {given!r}; write a list of {', '.join(known)}, or () for none."
        )
    for part in given:
        if part not in known:
            raise DeclarationError(
                f"loss: {kind} has no {part!r}, so nothing of it could carry loss. "
                f"Write some of {', '.join(known)}, or () for none."
            )
