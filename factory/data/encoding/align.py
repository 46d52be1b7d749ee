"""Runs to tokens: which token carries loss, and where a sequence may be cut.

Text between two special tokens is encoded as one piece, as the model's own tokenizer does, so
that the tokens are those of the template's text. A token can then reach over the end of a run
(line ends, mostly). It carries loss only if all of its characters do: nothing that a template or
somebody else wrote is ever learned.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding import breaks
from factory.data.encoding.encoded import Place
from factory.data.encoding.runs import Run
from factory.data.encoding.tokenizer import Coded, ImageTokens, Tokenizer
from factory.data.packing import Breaks, Span
from factory.errors import BadRow


@dataclass(slots=True)
class Stretch:
    """Text between two special tokens, in one or several runs."""

    texts: list[str] = field(default_factory=list[str])
    losses: list[bool] = field(default_factory=list[bool])
    prose: list[bool] = field(default_factory=list[bool])
    """Which runs may be cut in."""

    def add(self, text: str, loss: bool, prose: bool) -> None:
        """Append a run."""
        self.texts.append(text)
        self.losses.append(loss)
        self.prose.append(prose)

    @property
    def text(self) -> str:
        """What is encoded as one piece."""
        return self.texts[0] if len(self.texts) == 1 else "".join(self.texts)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first character of every run."""
        lengths = [0, *map(len, self.texts[:-1])]
        return np.cumsum(np.array(lengths, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Fixed:
    """Tokens that are known without encoding: special ones, and those of an image."""

    ids: tuple[int, ...]
    loss: bool = False
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn begins here."""


type Item = Stretch | Fixed | Turn


@dataclass(frozen=True, slots=True)
class Aligned:
    """Tokens of one sample."""

    tokens: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    breaks: Breaks
    images: tuple[Place, ...]


def items(runs: Iterable[Run], tokenizer: Tokenizer) -> list[Item]:
    """The runs, with special tokens and images taken out of the text.

    Raises:
        BadRow: there is an image, and the tokenizer has no tokens for it.
    """
    found: list[Item] = []
    for run in runs:
        if run.opens:
            found.append(Turn())
        for item in _split(run, tokenizer):
            if isinstance(item, Fixed):
                found.append(item)
                continue
            if not found or not isinstance(found[-1], Stretch):
                found.append(Stretch())
            stretch = found[-1]
            assert isinstance(stretch, Stretch)  # noqa: S101  for the type checker
            stretch.add(item, run.loss, run.origin == "content")
    return found


def _split(run: Run, tokenizer: Tokenizer) -> Iterator[Fixed | str]:
    match run.origin:
        case "content" | "data":
            if run.text:
                yield run.text
        case "markup":
            for piece in tokenizer.markup(run.text):
                yield piece if isinstance(piece, str) else Fixed((piece,), run.loss)
        case "image":
            yield Fixed(_image(tokenizer).ids, image=run.image)
        case "begin" | "end":
            edge = tokenizer.begin if run.origin == "begin" else tokenizer.end
            if edge is not None:
                yield Fixed((edge,), run.loss)


def _image(tokenizer: Tokenizer) -> ImageTokens:
    if tokenizer.image is None:
        raise BadRow("image, but the tokenizer has no tokens for images")
    return tokenizer.image


def aligned(found: Sequence[Item], coded: Iterator[Coded], pad: int, longest: int) -> Aligned:
    """The items as one sequence; `coded` gives the tokens of each stretch, in order.

    Breaks within prose cost a look at every token, so only what is over `longest` gets them.
    """
    sequence = _Sequence(pad)
    for item in found:
        match item:
            case Turn():
                sequence.turns.append(len(sequence.ids))
            case Fixed():
                sequence.add_fixed(item)
            case Stretch():
                sequence.add_stretch(item, next(coded))
    cut = sequence.stretches if len(sequence.ids) > longest else ()
    return Aligned(
        tokens=np.array(sequence.ids, dtype=np.int32),
        loss_mask=sequence.loss_mask(),
        breaks=Breaks(
            paragraphs=_breaks(cut, breaks.paragraphs, sequence.turns),
            sentences=_breaks(cut, breaks.sentences, ()),
            whole=[place.span for place in sequence.places],
        ),
        images=tuple(sequence.places),
    )


@dataclass(slots=True)
class _Sequence:
    """A sequence while it is put together."""

    pad: int
    ids: list[int] = field(default_factory=list[int])
    places: list[Place] = field(default_factory=list[Place])
    turns: list[int] = field(default_factory=list[int])
    stretches: list[tuple[Span, Stretch, Coded]] = field(
        default_factory=list[tuple[Span, Stretch, Coded]]
    )
    learned: list[Span] = field(default_factory=list[Span])
    """Tokens that all carry loss."""

    def add_fixed(self, item: Fixed) -> None:
        """Append tokens that are known."""
        span = Span(len(self.ids), len(self.ids) + len(item.ids))
        self.ids += item.ids
        if item.image is not None:
            at = span.start + self.pad
            self.places.append(Place(item.image, span, Span(at, at + 1)))
        if item.loss:
            self.learned.append(span)

    def add_stretch(self, item: Stretch, code: Coded) -> None:
        """Append the tokens of a text."""
        start = len(self.ids)
        self.ids += code.ids
        self.stretches.append((Span(start, len(self.ids)), item, code))

    def loss_mask(self) -> NDArray[np.bool_]:
        """Which tokens carry loss; nothing predicts the first one."""
        mask = np.zeros(len(self.ids), dtype=np.bool_)
        for start, stop in self.learned:
            mask[start:stop] = True
        for (start, stop), item, code in self.stretches:
            if all(item.losses):
                mask[start:stop] = True
            elif any(item.losses):
                mask[start:stop] = _loss(item, code)
        mask[:1] = False
        return mask


def _loss(stretch: Stretch, code: Coded) -> NDArray[np.bool_]:
    """Which tokens lie in runs that carry loss, with all of their characters."""
    starts, stops = code.spans()
    edges = stretch.starts
    foreign = np.concatenate(([0], np.cumsum(~np.array(stretch.losses))))
    first = np.searchsorted(edges, starts, side="right") - 1
    last = np.searchsorted(edges, np.maximum(stops - 1, starts), side="right") - 1
    return foreign[last + 1] == foreign[first]


def _breaks(
    stretches: Sequence[tuple[Span, Stretch, Coded]],
    where: Callable[[str], NDArray[np.int64]],
    turns: Iterable[int],
) -> list[int]:
    """Positions of tokens that begin where a text may be cut, or are the first ones behind."""
    found = set(turns)
    for (start, _), stretch, code in stretches:
        if not any(stretch.prose):
            continue
        characters = where(stretch.text)
        run = np.searchsorted(stretch.starts, characters, side="right") - 1
        characters = characters[np.array(stretch.prose)[run]]
        if len(characters):
            found.update((start + np.searchsorted(code.spans()[0], characters)).tolist())
    return sorted(found)
