"""`Pack`: one sequence of several documents, with what attention, positions and ledger need.

A position reads one token and predicts the next one; lengths count positions. Labels are made
before packing, so a piece can be cut anywhere without losing one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factory.data.packing.packing import Packing, aligned


class Segment(NamedTuple):
    """A piece, which is a sample or one part of it, or what of it lies in this pack."""

    place: int
    """The piece's place among the pieces that were laid out."""

    offset: int
    """The piece's first token that is here: 0 where pieces are not cut."""

    tokens: int
    start: int
    """Its first position in the pack."""


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """What attention is told, in Megatron's names, and the position ids."""

    cu_seqlens: NDArray[np.int32]
    """Where documents begin and end, counted without padding."""

    cu_seqlens_padded: NDArray[np.int32] | None
    """Where they lie; None where no document has padding of its own, since kernels are slower
    with it."""

    max_seqlen: int
    position_ids: NDArray[np.int64]
    """From 0 in each document; padding goes on counting."""


class Pack(NamedTuple):
    """Pieces in one sequence of the context's length."""

    lengths: tuple[int, ...]
    """Of the pieces that lie here, each as long as it is before any cut."""

    tokens: int
    """Positions that read a token."""

    used: int
    """Positions up to the end of the last document, its alignment included."""

    packing: Packing
    place: int = 0
    """The first piece's place among the pieces that were laid out."""

    offset: int = 0
    """The first piece's first token that is here."""

    @property
    def aligning(self) -> int:
        """Padding that only the alignment asks for."""
        return self.used - self.tokens

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Where each piece lies."""
        crossing = self.packing.crossing
        made: list[Segment] = []
        start, offset = 0, self.offset
        for place, length in enumerate(self.lengths, self.place):
            tokens = min(length - offset, self.tokens - start) if crossing else length
            made.append(Segment(place, offset, tokens, start))
            start += tokens if crossing else aligned(tokens, self.packing.alignment)
            offset = 0
        return tuple(made)

    def boundaries(self, *, filled: bool) -> Boundaries:
        """Boundaries up to the last document, or with the rest of the context `filled`.

        What fills the context is a document of its own, as in Megatron-Bridge, so that no token
        attends to it and each part still divides by the alignment.
        """
        crossing = self.packing.crossing
        lengths = [self.tokens] if crossing else list(self.lengths)
        sizes = [aligned(length, self.packing.alignment) for length in lengths]
        if filled and self.used < self.packing.context:
            lengths.append(0 if sizes != lengths else self.packing.context - self.used)
            sizes.append(self.packing.context - self.used)
        starts = np.cumsum([0, *sizes], dtype=np.int32)
        positions = np.arange(starts[-1], dtype=np.int64)
        return Boundaries(
            cu_seqlens=np.cumsum([0, *lengths], dtype=np.int32),
            cu_seqlens_padded=starts if sizes != lengths else None,
            max_seqlen=max(sizes),
            position_ids=positions - np.repeat(starts[:-1], sizes),
        )
