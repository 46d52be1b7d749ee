"""Encoder: a canonical sample to the token sequences that a model is trained on.

Text is bytes, so any text can be encoded and nothing is unknown. A document longer than the context
becomes several sequences; every token after the first is the label of exactly one position. This
is a plain rendering for small models and tests: no chat template, and loss on all of it.
Which samples come, and in which order, is the blend of `mix`. How Megatron-Bridge receives the
batches is `factory.training.loader`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from megatron.energon import TaskEncoder

PAD, BEGIN, END = 256, 257, 258
"""Token ids after the 256 bytes. `END` is the last one, where Megatron expects end-of-document."""

VOCABULARY_SIZE = 259

IMAGE = "<image>"
"""What stands in a text for an image, which bytes of text cannot show."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the options of a question are called."""


@dataclass(frozen=True)
class Piece:
    """One sequence of `length` positions: what the model reads and what it should say next."""

    tokens: Sequence[int]
    labels: Sequence[int]
    trained: int
    """Leading positions that carry loss; the rest is padding."""


def text_of(sample: Mapping[str, Any]) -> str:
    """The text that a sample is trained as, whatever its kind; an image is a word in it.

    Raises:
        ValueError: the sample is of an unknown kind.
    """
    kind = sample.get("kind")
    render = _RENDERINGS.get(str(kind))
    if render is None:
        raise ValueError(
            f"Sample {sample.get('id')!r} is of kind {kind!r}; "
            f"the encoder knows {', '.join(_RENDERINGS)}."
        )
    return render(sample[str(kind)])


def tokens_of(text: str) -> list[int]:
    """Begin, the UTF-8 bytes, end. A lone surrogate has no UTF-8 form and becomes `?`."""
    return [BEGIN, *text.encode("utf-8", errors="replace"), END]


def pieces(tokens: Sequence[int], length: int) -> Iterator[Piece]:
    """Cut a token sequence into pieces of `length` positions; only the last one is padded."""
    for start in range(0, len(tokens) - 1, length):
        window = list(tokens[start : start + length + 1])
        trained = len(window) - 1
        padding = [PAD] * (length - trained)
        yield Piece(tokens=window[:-1] + padding, labels=window[1:] + padding, trained=trained)


def task_encoder(length: int) -> "TaskEncoder[Any, Any, Any, Any]":
    """Energon's encoder from canonical samples to batches in the form that Bridge reads."""
    import torch
    from megatron.energon import Cooker, DefaultTaskEncoder, Sample, basic_sample_keys, stateless
    from megatron.energon.edataclass import edataclass

    @edataclass
    class Canonical(Sample):
        content: dict[str, Any]

    @edataclass
    class Encoded(Sample):
        piece: Piece

    @stateless
    def cook(raw: dict[str, Any]) -> Canonical:
        keys = cast("dict[str, Any]", basic_sample_keys(raw))
        return Canonical(**keys, content=raw["json"])

    class Encoder(DefaultTaskEncoder[Any, Any, Any, Any]):
        cookers = (Cooker(cook),)

        @stateless
        def encode_sample(self, sample: Canonical) -> Iterator[Encoded]:
            for piece in pieces(tokens_of(text_of(sample.content)), length):
                yield Encoded.derive_from(sample, piece=piece)

        @stateless
        def batch(self, samples: list[Encoded]) -> dict[str, Any]:
            found = [sample.piece for sample in samples]
            positions = torch.arange(length)
            trained = torch.tensor([piece.trained for piece in found])
            return {
                "tokens": torch.tensor([piece.tokens for piece in found]),
                "labels": torch.tensor([piece.labels for piece in found]),
                "loss_mask": (positions[None, :] < trained[:, None]).float(),
                "position_ids": positions.repeat(len(found), 1),
                "sources": [_source(sample) for sample in samples],
            }

        @stateless
        def encode_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
            return batch

    return Encoder()


def _source(sample: Any) -> str:
    flavors = cast(Mapping[str, Any], sample.__subflavors__ or {})
    return str(flavors.get("source", ""))


def _document(document: Mapping[str, Any]) -> str:
    parts = [document.get("title") or ""]
    for section in document.get("sections") or []:
        parts += [section.get("heading") or "", section.get("text") or ""]
    return "\n\n".join(part for part in parts if part)


def _question(question: Mapping[str, Any]) -> str:
    options: Sequence[str] = question.get("options") or ()
    lines = [
        f"Question: {question['question']}",
        *(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)),
        f"Answer: {question['answer']}",
    ]
    if question.get("explanation"):
        lines.append(f"Explanation: {question['explanation']}")
    return "\n".join(lines)


def _conversation(conversation: Mapping[str, Any]) -> str:
    """A line or more for each turn: who speaks, what, and the calls."""
    lines = [f"tools: {conversation['tools']}"] if conversation.get("tools") else []
    for message in conversation["messages"]:
        calls: Sequence[Mapping[str, str]] = message["tool_calls"]
        said = _parts(message["parts"])
        if said or not calls:
            lines.append(f"{message['role']}: {said}")
        lines += (f"{message['role']} calls {one['name']}({one['arguments']})" for one in calls)
    return "\n".join(lines)


def _image_text(content: Mapping[str, Any]) -> str:
    return _parts(content["parts"])


def _parts(parts: Sequence[Mapping[str, str | None]]) -> str:
    return "".join(IMAGE if part["text"] is None else part["text"] for part in parts)


_RENDERINGS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "document": _document,
    "question": _question,
    "conversation": _conversation,
    "image_text": _image_text,
}
