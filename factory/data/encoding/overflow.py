"""Sequences of at most a context from an encoded sample, and an account of all its positions.

Which spans are kept is decided in `factory.data.packing.overflow`; here they become tokens, labels
and loss masks, with the images that are still in them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding.encoded import Encoded, Place
from factory.data.packing import Kept, Overflow, Span, fit
from factory.data.packing.overflow import NO_LOSS


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sequence:
    """What a model reads and should say next, position by position."""

    tokens: NDArray[np.int32]
    labels: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    images: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitting:
    """The sequences of a sample; every other position is counted."""

    sequences: tuple[Sequence, ...]
    truncated: int = 0
    """Positions that were cut out of the middle."""

    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Positions of parts that are left out, by reason."""


def fitted(encoded: Encoded, policy: Overflow, context: int) -> Fitting:
    """The sample in sequences of at most `context` positions.

    Tokens and labels are paired before anything is cut, so that no label is lost at a cut. A part
    without loss teaches nothing and is dropped.
    """
    tokens, labels, mask = encoded.tokens[:-1], encoded.tokens[1:], encoded.loss_mask[1:]
    fit_in = fit(policy, mask, context, encoded.breaks)
    dropped = Counter[str]()
    if fit_in.dropped is not None:
        dropped[fit_in.dropped] += len(tokens)
    sequences: list[Sequence] = []
    for kept in fit_in.pieces:
        if not kept.loss_tokens:
            dropped[NO_LOSS] += kept.tokens
            continue
        sequences.append(
            Sequence(
                tokens=kept.of(tokens),
                labels=kept.of(labels),
                loss_mask=kept.of(mask),
                images=_shown(encoded, kept),
            )
        )
    return Fitting(
        sequences=tuple(sequences),
        truncated=fit_in.truncated,
        dropped=dict(dropped),
    )


def _shown(encoded: Encoded, kept: Kept) -> tuple[Place, ...]:
    """The images in the spans that are kept, where they are now. Cuts never enter an image."""
    found: list[Place] = []
    before = 0
    for span in kept.spans:
        shift = before - span.start
        found += [
            place._replace(
                span=Span(place.span.start + shift, place.span.stop + shift),
                pad=Span(place.pad.start + shift, place.pad.stop + shift),
            )
            for place in encoded.images
            if span.start <= place.span.start and place.span.stop <= span.stop
        ]
        before += span.stop - span.start
    return tuple(found)
