"""`Encoded`: a sample in tokens, with what each of them is for.

A position reads one token and predicts the next one, so n tokens are n - 1 positions, and the loss
of a token lies at the position before it. What is longer than a context is cut in `overflow`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factory.data.packing import Breaks, Span


class Place(NamedTuple):
    """Where an image is in a sequence."""

    image: str
    """SHA-256 of the image."""

    span: Span
    """All of its tokens."""

    pad: Span
    """Those that stand for patches of it: one until `expanded`."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Encoded:
    """Tokens of one sample."""

    tokens: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    """Which tokens the model learns to write; never the first one, which nothing predicts."""

    breaks: Breaks
    images: tuple[Place, ...]
    key: str
    """The entry that it was read from."""

    source: str
    """The dataset."""

    @property
    def loss_tokens(self) -> int:
        """Tokens that carry loss."""
        return int(np.count_nonzero(self.loss_mask))


class Refused(NamedTuple):
    """A sample that nothing can be learned from, or that cannot be written in this template."""

    key: str
    source: str
    reason: str
    tokens: int
    """0 where it was refused before it became tokens."""


def expanded(encoded: Encoded, patches: Sequence[int]) -> Encoded:
    """The sample with room for so many patches of each image, as its processor counts them.

    Raises:
        ValueError: there are more images than counts, or fewer, or an image without a patch.
    """
    if len(patches) != len(encoded.images) or any(count < 1 for count in patches):
        raise ValueError(
            f"{encoded.key} shows {len(encoded.images)} images, but its patches are "
            f"{list(patches)}: one number above 0 is needed for each."
        )
    if not patches:
        return encoded
    counts = np.ones(len(encoded.tokens), dtype=np.int64)
    for place, count in zip(encoded.images, patches, strict=True):
        counts[place.pad.start] = count
    at = np.concatenate(([0], np.cumsum(counts)))

    def moved(span: Span) -> Span:
        return Span(int(at[span.start]), int(at[span.stop]))

    breaks = encoded.breaks
    return replace(
        encoded,
        tokens=np.repeat(encoded.tokens, counts),
        loss_mask=np.repeat(encoded.loss_mask, counts),
        breaks=Breaks(
            paragraphs=at[np.asarray(breaks.paragraphs, dtype=np.int64)].tolist(),
            sentences=at[np.asarray(breaks.sentences, dtype=np.int64)].tolist(),
            whole=[moved(span) for span in breaks.whole],
        ),
        images=tuple(
            place._replace(span=moved(place.span), pad=moved(place.pad)) for place in encoded.images
        ),
    )
