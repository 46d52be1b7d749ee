"""What a sample can hold: a document, a question, a conversation, or text with images.

Each has its form as JSON, which is its struct in Parquet as well (`table`). What all samples have
in common is in `sample`; which conversations are refused is in `chat.rules`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from factory.data.json_text import is_list, is_object
from factory.data.parts import (
    Given,
    Part,
    Picture,
    Text,
    parts_as_dicts,
    parts_from_dicts,
    parts_of,
    pictures_in,
    refuse_text,
    require_string,
    require_text,
)

type Kind = Literal["document", "question", "conversation", "image_text"]

type Role = Literal["system", "user", "assistant", "tool"]

ROLES: tuple[Role, ...] = get_args(Role.__value__)
"""Who can speak in a conversation. Other vocabularies are translated in `chat`."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a document. The heading of a nested part names its parents: `Methods / Cells`."""

    heading: str
    text: str

    def __post_init__(self) -> None:
        require_string("heading", self.heading)
        require_text("text of a section", self.text)


@dataclass(frozen=True, slots=True)
class Document:
    """Running text: an article, a letter, a web page."""

    title: str
    sections: tuple[Section, ...]

    def __post_init__(self) -> None:
        require_string("title", self.title)
        if not self.sections:
            raise ValueError("the document has no sections")

    @property
    def texts(self) -> Iterator[str]:
        """Every text of it, in order."""
        yield self.title
        for section in self.sections:
            yield section.heading
            yield section.text

    def as_dict(self) -> dict[str, Any]:
        """The document as JSON."""
        sections = [{"heading": one.heading, "text": one.text} for one in self.sections]
        return {"title": self.title, "sections": sections}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        sections = (Section(one["heading"], one["text"]) for one in value["sections"])
        return cls(value["title"], tuple(sections))


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer. `options` only where the source offers a choice."""

    question: str
    answer: str
    options: tuple[str, ...] = ()
    explanation: str | None = None

    def __post_init__(self) -> None:
        require_text("question", self.question)
        require_text("answer", self.answer)
        refuse_text("options", self.options)
        for option in self.options:
            require_string("option", option)
        if self.explanation is not None:
            require_string("explanation", self.explanation)

    @property
    def texts(self) -> Iterator[str]:
        """Every text of it, in order."""
        yield self.question
        yield from self.options
        yield self.answer
        yield self.explanation or ""

    def as_dict(self) -> dict[str, Any]:
        """The question as JSON."""
        return {
            "question": self.question,
            "options": list(self.options),
            "answer": self.answer,
            "explanation": self.explanation,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        options = tuple(value["options"])
        return cls(value["question"], value["answer"], options, value["explanation"])


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the assistant calls, with its arguments as JSON text."""

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        require_string("id of a tool call", self.id)
        require_text("name of a tool call", self.name)
        require_string("arguments of a tool call", self.arguments)
        if not is_object(self.arguments):
            raise ValueError("the arguments of a tool call are not a JSON object")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. `Message.of` takes text and images as they are."""

    role: str
    parts: tuple[Part, ...]
    tool_calls: tuple[ToolCall, ...] = ()

    tool_call_id: str | None = None
    """Which call a turn of the role `tool` answers."""

    name: str | None = None
    """Who speaks, where several do, or the function whose result this is."""

    trained: bool | None = None
    """Whether the turn carries loss; None leaves it to the dataset's policy, see `loss`."""

    def __post_init__(self) -> None:
        for what, value in (("id of an answered call", self.tool_call_id), ("name", self.name)):
            if value is not None:
                require_string(what, value)
        if not isinstance(self.trained, bool | None):  # pyright: ignore[reportUnnecessaryIsInstance]  written by hand
            raise TypeError(f"trained is {self.trained!r}, neither True, False nor None")

    @staticmethod
    def of(
        role: str,
        content: Given | Iterable[Given] = (),
        tool_calls: Iterable[ToolCall] = (),
        *,
        tool_call_id: str | None = None,
        name: str | None = None,
        trained: bool | None = None,
    ) -> "Message":
        """A message from text, an image, or several of both."""
        return Message(role, parts_of(content), tuple(tool_calls), tool_call_id, name, trained)

    @property
    def text(self) -> str:
        """The text of the message, without its images and calls."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def as_dict(self) -> dict[str, Any]:
        """The message as JSON."""
        calls = [
            {"id": one.id, "name": one.name, "arguments": one.arguments} for one in self.tool_calls
        ]
        return {
            "role": self.role,
            "parts": parts_as_dicts(self.parts),
            "tool_calls": calls,
            "tool_call_id": self.tool_call_id,
            "name": self.name,
            "trained": self.trained,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        calls = (ToolCall(one["id"], one["name"], one["arguments"]) for one in value["tool_calls"])
        return cls(
            role=value["role"],
            parts=parts_from_dicts(value["parts"]),
            tool_calls=tuple(calls),
            tool_call_id=value["tool_call_id"],
            name=value["name"],
            trained=value["trained"],
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order, and the functions that could be called."""

    messages: tuple[Message, ...]

    tools: str | None = None
    """JSON text of the list of function declarations, as the source writes it."""

    def __post_init__(self) -> None:
        if self.tools is not None:
            require_string("tools", self.tools)
            if not is_list(self.tools):
                raise ValueError("tools is not the JSON text of a list")

    @property
    def texts(self) -> Iterator[str]:
        """Every text of it, in order: calls with their names and arguments included."""
        yield self.tools or ""
        for message in self.messages:
            yield message.text
            for call in message.tool_calls:
                yield call.name
                yield call.arguments

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The images in it, in order."""
        return tuple(one for message in self.messages for one in pictures_in(message.parts))

    def as_dict(self) -> dict[str, Any]:
        """The conversation as JSON."""
        return {"tools": self.tools, "messages": [one.as_dict() for one in self.messages]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        return cls(tuple(map(Message.from_dict, value["messages"])), value["tools"])


@dataclass(frozen=True, slots=True)
class ImageText:
    """Images and text in the order in which they belong together: captions, pages."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.pictures:
            raise ValueError("there is no image; text alone is a document")

    @property
    def texts(self) -> Iterator[str]:
        """Every text of it, in order."""
        return (part.text for part in self.parts if isinstance(part, Text))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The images in it, in order."""
        return tuple(pictures_in(self.parts))

    def as_dict(self) -> dict[str, Any]:
        """The parts as JSON."""
        return {"parts": parts_as_dicts(self.parts)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        return cls(parts_from_dicts(value["parts"]))


type Content = Document | Question | Conversation | ImageText

CONTENTS: Mapping[Kind, type[Content]] = {
    "document": Document,
    "question": Question,
    "conversation": Conversation,
    "image_text": ImageText,
}

KINDS: Mapping[type[Content], Kind] = {content: kind for kind, content in CONTENTS.items()}
