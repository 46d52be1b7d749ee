"""Collate: packs to the arrays of one batch, in the form that Megatron-Bridge reads, with counts.

All sequences of a batch lie one behind the other in a single row, and `cu_seqlens` says where each
document begins: what is called THD. No attention mask is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding import Sequence as Tokens
from factory.data.packing import Pack, Span
from factory.data.stream.account import (
    DOCUMENTS,
    FIELDS,
    IMAGE_TOKENS,
    LOSS_TOKENS,
    SAMPLES,
    TOKENS,
    TRUNCATED,
)
from factory.data.stream.drawn import Drawn

type Fragment = tuple[int, int, int, int]
"""Place of a sample in the buffer, place of a sequence in the sample, its first position that is
meant, and the one behind the last. Plain numbers, for checkpoints."""


class Laid(NamedTuple):
    """A pack, and what it was made of."""

    pack: Pack
    fragments: Sequence[Fragment]
    """What the places of its segments count in."""

    buffer: Sequence[Drawn]
    """What the fragments' places count in."""

    @property
    def remaining(self) -> list[Fragment]:
        """The fragments that lie in this pack."""
        found: list[Fragment] = []
        for segment in self.pack.segments:
            place, part, start, _ = self.fragments[segment.place]
            start += segment.offset
            found.append((place, part, start, start + segment.tokens))
        return found


class Document(NamedTuple):
    """What of a sequence lies in a batch."""

    drawn: Drawn
    sequence: Tokens
    first: bool
    """Whether its sample begins here."""

    read: Span
    """Positions of the sequence."""

    start: int
    """Its first position in the batch."""


@dataclass(frozen=True, slots=True)
class Collated:
    """A batch, before it becomes tensors."""

    arrays: dict[str, NDArray[Any]]
    """By Megatron-Bridge's names, but `cu_seqlens` and `cu_seqlens_padded` without `_q`, `_kv`."""

    longest: int
    """Positions of the longest document, padding of its own included."""

    documents: tuple[Document, ...]

    def counts(self, sources: int, patches: bool) -> NDArray[np.int64]:
        """By source and field of an account; with `patches`, tokens of images are theirs."""
        counts = np.zeros((sources, len(FIELDS)), dtype=np.int64)
        for drawn, sequence, first, (start, stop), _ in self.documents:
            row = counts[drawn.source]
            row[DOCUMENTS] += 1
            row[TOKENS] += stop - start
            row[LOSS_TOKENS] += np.count_nonzero(sequence.loss_mask[start:stop])
            if first:
                row[SAMPLES] += 1
                row[TRUNCATED] += drawn.truncated
            if patches:
                row[IMAGE_TOKENS] += sum(
                    max(0, min(stop, place.pad.stop) - max(start, place.pad.start))
                    for place in sequence.images
                )
        return counts

    @property
    def drawn(self) -> NDArray[np.int64]:
        """Source and ordinal of every sample that begins here."""
        begun = [(one.drawn.source, one.drawn.ordinal) for one in self.documents if one.first]
        return np.array(begun, dtype=np.int64).reshape(-1, 2)


def collate(laid: Sequence[Laid]) -> Collated:
    """Packs of one context as one row; where nothing lies, there is token 0 and no loss."""
    context = laid[0].pack.packing.context
    slots = context * len(laid)
    tokens = np.zeros(slots, dtype=np.int64)
    labels = np.zeros(slots, dtype=np.int64)
    loss_mask = np.zeros(slots, dtype=np.float32)
    bounds = [one.pack.boundaries(filled=True) for one in laid]
    documents = tuple(_documents(laid, context))
    for _, sequence, _, (start, stop), at in documents:
        where = slice(at, at + stop - start)
        tokens[where] = sequence.tokens[start:stop]
        labels[where] = sequence.labels[start:stop]
        loss_mask[where] = sequence.loss_mask[start:stop]
    arrays: dict[str, NDArray[Any]] = {
        "tokens": tokens,
        "labels": labels,
        "loss_mask": loss_mask,
        "position_ids": np.concatenate([one.position_ids for one in bounds]),
        "cu_seqlens": _joined([one.cu_seqlens for one in bounds]),
    }
    if any(one.cu_seqlens_padded is not None for one in bounds):
        padded = [
            one.cu_seqlens if one.cu_seqlens_padded is None else one.cu_seqlens_padded
            for one in bounds
        ]
        arrays["cu_seqlens_padded"] = _joined(padded)
    return Collated(arrays, max(one.max_seqlen for one in bounds), documents)


def _documents(laid: Sequence[Laid], context: int) -> Iterator[Document]:
    for row, one in enumerate(laid):
        for segment, fragment in zip(one.pack.segments, one.remaining, strict=True):
            place, part, start, stop = fragment
            drawn = one.buffer[place]
            first = part == 0 and start == 0
            at = row * context + segment.start
            yield Document(drawn, drawn.sequences[part], first, Span(start, stop), at)


def _joined(starts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Boundaries of several packs as those of one row."""
    lengths = np.concatenate([np.diff(one) for one in starts])
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
