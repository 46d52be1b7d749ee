"""Plain renderings: documents, questions, text with images, and conversations without a template.

A label (`Answer:`) never carries loss; the space behind it and the line end belong to what it
labels, so that no token lies half in a label. What a chat model's template makes of a conversation
is in `qwen`; the one here is for tokenizers that have none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from factory.data.encoding.runs import Run, runs_of, said
from factory.data.kinds import Kind
from factory.data.loss import Loss

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the options of a question are called."""

IMAGE = "<image>"
"""How an image is written where there is no template. It is encoded as the tokenizer says."""


def document(content: Mapping[str, Any], policy: Loss) -> list[Run]:
    """Title, headings and texts as paragraphs."""
    parts = [(content["title"], "title" in policy.document)]
    for section in content["sections"]:
        parts += [(section[name], "sections" in policy.document) for name in ("heading", "text")]
    runs = [Run("begin")]
    for text, loss in parts:
        if text:
            gap = "\n\n" if len(runs) > 1 else ""
            runs.append(Run("content", gap + text, loss))
    return _ended(runs)


def question(content: Mapping[str, Any], policy: Loss) -> list[Run]:
    """A labelled line or more for each part; options have letters."""
    options: Sequence[str] = content["options"]
    labelled = [("Question:", content["question"], "question")]
    labelled += [(f"{_letter(at)}.", option, "options") for at, option in enumerate(options)]
    labelled.append(("Answer:", content["answer"], "answer"))
    if content["explanation"]:
        labelled.append(("Explanation:", content["explanation"], "explanation"))
    runs = [Run("begin")]
    for at, (label, text, part) in enumerate(labelled, start=1):
        line_end = "" if at == len(labelled) else "\n"
        loss = part in policy.question
        runs += [Run("markup", label), Run("content", f" {text}{line_end}", loss)]
    return _ended(runs)


def image_text(content: Mapping[str, Any], policy: Loss) -> list[Run]:
    """Text and images in their order."""
    shown = runs_of(content["parts"], "text" in policy.image_text, IMAGE)
    return _ended([Run("begin"), *shown])


def conversation(content: Mapping[str, Any], policy: Loss) -> list[Run]:
    """A labelled line or more for each turn, and one for each call."""
    lines = list(_lines(content, policy))
    runs = [Run("begin")]
    for at, line in enumerate(lines, start=1):
        runs += line
        if at < len(lines):
            runs.append(Run("content", "\n", line[-1].loss))
    return _ended(runs)


RENDERINGS: Mapping[Kind, Callable[[Mapping[str, Any], Loss], list[Run]]] = {
    "document": document,
    "question": question,
    "image_text": image_text,
    "conversation": conversation,
}


def _lines(content: Mapping[str, Any], policy: Loss) -> Iterator[list[Run]]:
    if content["tools"]:
        yield [Run("markup", "tools:"), Run("data", f" {content['tools']}")]
    for message in content["messages"]:
        loss = is_trained(message, policy)
        calls: Sequence[Mapping[str, str]] = message["tool_calls"]
        if said(message["parts"]) or not calls:
            shown = list(runs_of(message["parts"], loss, IMAGE))
            label = Run("markup", f"{message['role']}:", opens=True)
            yield [label, Run("content", " ", loss), *shown]
        for call in calls:
            written = f" {call['name']}({call['arguments']})"
            label = Run("markup", f"{message['role']} calls", opens=True)
            yield [label, Run("data", written, loss and policy.tool_calls)]


def is_trained(message: Mapping[str, Any], policy: Loss) -> bool:
    """Whether a turn carries loss: as it says itself, else by its role."""
    said_so: bool | None = message["trained"]
    return message["role"] in policy.conversation if said_so is None else said_so


def _letter(place: int) -> str:
    """A to Z, then AA, AB and so on."""
    letters = LETTERS[place % len(LETTERS)]
    while place := place // len(LETTERS):
        place -= 1
        letters = LETTERS[place % len(LETTERS)] + letters
    return letters


def _ended(runs: list[Run]) -> list[Run]:
    return [*runs, Run("end", loss=runs[-1].loss)]
