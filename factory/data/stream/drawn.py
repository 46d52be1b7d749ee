"""`Drawn`: a sample that was drawn from a source, in sequences of at most a context.

It remembers how it was drawn, so that a checkpoint holds that instead of its tokens.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factory.data.encoding import Encoded, Refused, expanded, fitted
from factory.data.encoding import Sequence as Tokens
from factory.data.encoding.images import ImageProcessor, size_of
from factory.data.packing import Overflow
from factory.errors import BadRow

HASH_CHARACTERS = 16
"""Of an image's hash in the name of its file in a shard."""


@dataclass(slots=True, eq=False)
class Drawn:
    """A sample."""

    source: int
    ordinal: int
    """Its place among the samples of its source, from 0."""

    sequences: Sequence[Tokens] = ()
    truncated: int = 0
    """Positions that were cut out of its middle."""

    dropped: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Samples, 1 where nothing of it is left, and positions, by reason."""

    images: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Image files by hash."""

    __restore_key__: tuple[Any, ...] = ()
    """How Energon draws it again."""

    @property
    def tokens(self) -> int:
        """Positions to be trained on."""
        return sum(len(one.tokens) for one in self.sequences)

    @property
    def loss_tokens(self) -> int:
        """Those that carry loss."""
        return sum(int(np.count_nonzero(one.loss_mask)) for one in self.sequences)


def drawn(
    made: Encoded | Refused, policy: Overflow, context: int, at: tuple[int, int], images: "Shown"
) -> Drawn:
    """What an encoded sample comes to; `at` is its source and ordinal.

    A sample of which nothing is left is dropped with all its positions, for the reason of most.
    """
    source, ordinal = at
    if isinstance(made, Refused):
        positions = max(0, made.tokens - 1)
        return Drawn(source, ordinal, dropped={made.reason: (1, positions)})
    found = fitted(made, policy, context)
    if not found.sequences:
        reason = max(found.dropped, key=lambda one: found.dropped[one])
        return Drawn(source, ordinal, dropped={reason: (1, len(made.tokens) - 1)})
    return Drawn(
        source,
        ordinal,
        sequences=found.sequences,
        truncated=found.truncated,
        dropped={reason: (0, tokens) for reason, tokens in found.dropped.items()},
        images=images.of(found.sequences),
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """The image files of a sample, and the processor that says how many tokens each takes."""

    files: Mapping[str, Any]
    """The parts of its entry in a shard, by name."""

    processor: ImageProcessor | None

    def expanded(self, made: Encoded | Refused) -> Encoded | Refused:
        """The sample with room for its images; without a processor an image is a word."""
        if self.processor is None or isinstance(made, Refused) or not made.images:
            return made
        try:
            patches = [
                self.processor.tokens(*size_of(self._file(one.image))) for one in made.images
            ]
        except BadRow as refusal:
            return Refused(made.key, made.source, refusal.reason, len(made.tokens))
        return expanded(made, patches)

    def of(self, sequences: Iterable[Tokens]) -> dict[str, bytes]:
        """The files that some sequences show."""
        if self.processor is None:
            return {}
        shown = {place.image for one in sequences for place in one.images}
        return {image: self._file(image) for image in shown}

    def _file(self, image: str) -> bytes:
        start = image[:HASH_CHARACTERS]
        return next(data for name, data in self.files.items() if name.startswith(start))
