"""Overflow: what becomes of a sample that is longer than the context, decided per dataset.

`split` keeps every token, in several pieces; `truncate_middle` keeps the beginning and the end;
`drop` keeps nothing. Each says which spans are kept and counts the rest; no token is copied
here. Positions read one token and predict the next, so no label is lost at a cut.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factory.data.mix_words import Overflow

NO_LOSS = "no loss token"
TOO_LONG = "longer than the context"
UNBREAKABLE = "an image longer than the context"


class Span(NamedTuple):
    """Positions from `start`, up to but without `stop`."""

    start: int
    stop: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Breaks:
    """Where a sequence may be cut; all in ascending order."""

    paragraphs: Sequence[int] = ()
    """First positions of paragraphs, turns or sections."""

    sentences: Sequence[int] = ()
    whole: Sequence[Span] = ()
    """Spans that no cut may enter: the tokens of one image. They do not overlap."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One piece: the spans that it joins."""

    spans: tuple[Span, ...]
    loss_tokens: int

    @property
    def tokens(self) -> int:
        """Positions of the piece."""
        return sum(stop - start for start, stop in self.spans)

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """The piece's part of tokens, labels, mask, or whatever has one value a position."""
        return np.concatenate([values[start:stop] for start, stop in self.spans])


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """The pieces of a sample and where its other tokens went."""

    pieces: tuple[Kept, ...]
    truncated: int = 0
    dropped: str | None = None
    """Why nothing of it is kept."""


def fit(
    policy: Overflow,
    loss_mask: Sequence[int] | NDArray[Any],
    context: int,
    breaks: Breaks | None = None,
) -> Fitted:
    """Pieces of at most `context` positions; a sample that fits is its own piece.

    Raises:
        ValueError: the context holds nothing, or there is no such policy.
    """
    if context < 1:
        raise ValueError(f"A context of {context} holds nothing; it is a number above 0.")
    if policy not in _POLICIES:
        raise ValueError(f"No overflow policy {policy!r}. Known: {', '.join(_POLICIES)}.")
    loss = np.concatenate(([0], np.cumsum(np.asarray(loss_mask) != 0))).astype(np.int64)
    if len(loss) - 1 <= context:
        return Fitted(pieces=(_kept(loss, Span(0, len(loss) - 1)),))
    return _POLICIES[policy](loss, context, breaks or Breaks())


def _split(loss: NDArray[np.int64], context: int, breaks: Breaks) -> Fitted:
    """Cut before the last paragraph that leaves a piece at least half full, else sentence."""
    length = len(loss) - 1
    pieces: list[Kept] = []
    start = 0
    while length - start > context:
        stop = _stop(start, context, breaks)
        if stop == start:
            return Fitted(pieces=(), dropped=UNBREAKABLE)
        pieces.append(_kept(loss, Span(start, stop)))
        start = stop
    pieces.append(_kept(loss, Span(start, length)))
    return Fitted(pieces=tuple(pieces))


def _stop(start: int, context: int, breaks: Breaks) -> int:
    lowest, highest = start + (context + 1) // 2, start + context
    for offsets in (breaks.paragraphs, breaks.sentences):
        at = bisect_right(offsets, highest) - 1
        if at >= 0 and offsets[at] >= lowest and _around(offsets[at], breaks) is None:
            return offsets[at]
    image = _around(highest, breaks)
    return highest if image is None else max(start, image.start)


def _truncate_middle(loss: NDArray[np.int64], context: int, breaks: Breaks) -> Fitted:
    """Keep half a context of the beginning and half of the end."""
    length = len(loss) - 1
    head, tail = (context + 1) // 2, length - context // 2
    image = _around(head, breaks)
    head = head if image is None else image.start
    image = _around(tail, breaks)
    tail = tail if image is None else image.stop
    spans = [span for span in (Span(0, head), Span(tail, length)) if span.stop > span.start]
    if not spans:
        return Fitted(pieces=(), dropped=UNBREAKABLE)
    kept = _kept(loss, *spans)
    return Fitted(pieces=(kept,), truncated=length - kept.tokens)


def _drop(loss: NDArray[np.int64], context: int, breaks: Breaks) -> Fitted:
    return Fitted(pieces=(), dropped=TOO_LONG)


_POLICIES = {"split": _split, "truncate_middle": _truncate_middle, "drop": _drop}


def _around(position: int, breaks: Breaks) -> Span | None:
    """The span that a cut before `position` would tear."""
    at = bisect_right(breaks.whole, position, key=lambda span: span.start) - 1
    if at >= 0 and breaks.whole[at].start < position < breaks.whole[at].stop:
        return breaks.whole[at]
    return None


def _kept(loss: NDArray[np.int64], *spans: Span) -> Kept:
    return Kept(spans, sum(int(loss[stop] - loss[start]) for start, stop in spans))
