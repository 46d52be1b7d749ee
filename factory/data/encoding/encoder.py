"""`Encoder`: canonical samples to tokens, each with the loss that its dataset's policy asks for.

A pure function of sample, policy, tokenizer and template: equal inputs give equal tokens in every
process. What makes batches of many samples is `factory.data.stream`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from factory.data.encoding import plain
from factory.data.encoding.align import Aligned, Item, Stretch, aligned, items
from factory.data.encoding.encoded import Encoded, Refused
from factory.data.encoding.runs import Run
from factory.data.encoding.template import Rendering
from factory.data.encoding.tokenizer import Tokenizer
from factory.data.loss import Loss
from factory.data.mix_words import Chat
from factory.data.packing.overflow import NO_LOSS
from factory.data.sample import canonical
from factory.errors import BadRow, SpecError


@dataclass(frozen=True)
class Encoder:
    """A tokenizer, and how conversations are written in it."""

    tokenizer: Tokenizer
    chat: Chat = "template"
    """By the tokenizer's own chat template, or in labelled lines, which need none."""

    longest: int = 0
    """Only for sequences of more tokens is it worked out where prose may be cut: the context."""

    policies: Mapping[str, Loss] = field(default_factory=dict[str, Loss])
    """What carries loss, by dataset; others have the default policy."""

    def encode(self, sample: Mapping[str, Any], key: str = "") -> Encoded | Refused:
        """One sample, in its canonical form as JSON; `key` is its entry's.

        Raises:
            SpecError: the tokenizer has no chat template that conversations can be written in.
            ValueError: the sample is of an unknown kind.
        """
        (made,) = self.encode_all([(key, sample)])
        return made

    def encode_all(
        self, samples: Iterable[tuple[str, Mapping[str, Any]]]
    ) -> list[Encoded | Refused]:
        """Many samples, with their entries' keys: the same, in less time where texts are short."""
        named = [(key, sample, self._items(sample)) for key, sample in samples]
        stretches = [
            item.text
            for _, _, found in named
            if not isinstance(found, BadRow)
            for item in found
            if isinstance(item, Stretch)
        ]
        coded = iter(self.tokenizer.encode(stretches))
        pad = self.tokenizer.image.pad if self.tokenizer.image else 0
        return [
            Refused(key, sample["source"], str(found), 0)
            if isinstance(found, BadRow)
            else _judged(key, sample["source"], aligned(found, coded, pad, self.longest))
            for key, sample, found in named
        ]

    def runs(self, sample: Mapping[str, Any]) -> list[Run]:
        """The rendering of a sample.

        Raises:
            BadRow: it cannot be rendered.
        """
        kind = sample["kind"]
        render = self._conversation if kind == "conversation" else plain.RENDERINGS.get(kind)
        if render is None:
            raise ValueError(
                f"A sample is of kind {kind!r}; known are {', '.join(plain.RENDERINGS)}."
            )
        return render(sample[kind], self.policies.get(sample["source"], _DEFAULT))

    @cached_property
    def identity(self) -> str:
        """Equal for encoders that make the same tokens of the same conversations."""
        chat = self.chat if self.chat == "plain" else self._rendering[0]
        return canonical({"tokenizer": self.tokenizer.identity, "chat": chat}).decode()

    def _items(self, sample: Mapping[str, Any]) -> Sequence[Item] | BadRow:
        try:
            return items(self.runs(sample), self.tokenizer)
        except BadRow as refusal:
            return refusal

    @cached_property
    def _conversation(self) -> Rendering:
        return plain.conversation if self.chat == "plain" else self._rendering[1]

    @cached_property
    def _rendering(self) -> tuple[str, Rendering]:
        template = self.tokenizer.template
        if template is None:
            raise SpecError(
                f"The tokenizer {self.tokenizer.name} has no chat template, so conversations "
                "cannot be written as its model reads them. Put the model's own "
                "chat_template.jinja beside it, or use chat='plain'."
            )
        return template.rendering()


_DEFAULT = Loss()


def _judged(key: str, source: str, made: Aligned) -> Encoded | Refused:
    if not made.loss_mask.any():
        return Refused(key, source, NO_LOSS, len(made.tokens))
    return Encoded(
        tokens=made.tokens,
        loss_mask=made.loss_mask,
        breaks=made.breaks,
        images=made.images,
        key=key,
        source=source,
    )
