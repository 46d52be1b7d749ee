"""Samples: what `clean` returns, one per row of the source, or a reason for having none.

A sample has the same common fields whatever its kind, and one content that depends on the kind.
How samples lie in Parquet is in `table`; how rows of a source are read is in `row`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ERROR = "error: "
"""How the reason of a row starts on which `clean` raised."""

type Kind = Literal["document", "question"]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a document. The heading of a nested part names its parents: `Methods / Cells`."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """Running text: an article, a letter, a web page."""

    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer. `options` only where the source offers a choice."""

    question: str
    answer: str
    options: tuple[str, ...] = ()
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why a row gives no sample. Reasons are counted, so keep them few and constant."""

    reason: str

    def __post_init__(self) -> None:
        _require_text("reason", self.reason)
        if self.reason.startswith(ERROR):
            raise ValueError(f"a reason may not start with {ERROR!r}, which marks exceptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One training sample. Make it with `Sample.document` or `Sample.question`."""

    id: str
    """Unique in its dataset."""

    content: Document | Question
    group: str = ""
    """Samples of one group land in one split; `clean` fills it with the id where it is empty."""

    source: str = ""
    """Key of the dataset; filled by the `clean` step."""

    license: str = ""
    """SPDX id; the licence of the dataset where the row states none."""

    meta: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        _require_text("id", self.id)
        for name, value in self.meta.items():
            _require_string(f"meta[{name!r}]", value)

    @property
    def kind(self) -> Kind:
        """Name of the content's type, and of its column in Parquet."""
        return "document" if isinstance(self.content, Document) else "question"

    @property
    def characters(self) -> int:
        """Characters of the content, all text in it added up."""
        content = self.content
        if isinstance(content, Document):
            parts = (len(part.heading) + len(part.text) for part in content.sections)
            return len(content.title) + sum(parts)
        texts = (content.question, content.answer, content.explanation or "", *content.options)
        return sum(map(len, texts))

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
        _require_string("title", title)
        parts = tuple(Section(heading, text) for heading, text in sections)
        if not parts:
            raise ValueError(f"document {id!r} has no sections")
        for part in parts:
            _require_string("heading", part.heading)
            _require_text("text of a section", part.text)
        content = Document(title, parts)
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
        _require_text("question", question)
        _require_text("answer", answer)
        content = Question(question, answer, tuple(options), explanation)
        return Sample(id=id, content=content, group=group, license=license, meta=meta or {})

    def as_dict(self) -> dict[str, Any]:
        """The sample as JSON has it, in every place where samples are written as JSON."""
        common: dict[str, Any] = {
            "id": self.id,
            "group": self.group,
            "kind": self.kind,
            "source": self.source,
            "license": self.license,
            "meta": dict(self.meta),
        }
        content = self.content
        if isinstance(content, Document):
            sections = [{"heading": part.heading, "text": part.text} for part in content.sections]
            return common | {"document": {"title": content.title, "sections": sections}}
        question = {
            "question": content.question,
            "options": list(content.options),
            "answer": content.answer,
            "explanation": content.explanation,
        }
        return common | {"question": question}

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Sample":
        """The inverse of `as_dict`."""
        common = {name: value[name] for name in ("id", "group", "source", "license")}
        meta = dict(value["meta"])
        if value["kind"] == "document":
            body = value["document"]
            parts = tuple(Section(part["heading"], part["text"]) for part in body["sections"])
            return Sample(content=Document(body["title"], parts), meta=meta, **common)
        body = value["question"]
        content = Question(
            body["question"], body["answer"], tuple(body["options"]), body["explanation"]
        )
        return Sample(content=content, meta=meta, **common)


def canonical(value: Mapping[str, Any]) -> bytes:
    """A value as one line of JSON that is the same wherever it is made."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()


def _require_string(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, not a string")


def _require_text(name: str, value: object) -> None:
    _require_string(name, value)
    if not str(value).strip():
        raise ValueError(f"{name} is empty")
