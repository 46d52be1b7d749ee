"""`BatchAccount`: what one batch holds, source by source; `Chain`: what a rank has read, as a hash.

A loader worker makes an account with every batch. It travels to the main process with the batch
and counts from there on only if the batch is trained on: batches that a loader has made ahead are
made again after a restart. Sources are numbered as in the lock of the mix.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

FIELDS = ("samples", "documents", "tokens", "loss_tokens", "image_tokens", "truncated")
"""Columns of `BatchAccount.counts`. `samples`: a sample counts where its first part lies.
`documents`: sequences, or parts of one that a sequence's end cut. `tokens`: positions that read a
token; `loss_tokens`: those that carry loss; `image_tokens`: those that stand for patches of an
image. `truncated`: positions that were cut out of the middle of the samples that count here."""

SAMPLES, DOCUMENTS, TOKENS, LOSS_TOKENS, IMAGE_TOKENS, TRUNCATED = range(len(FIELDS))

DIGESTED = (
    "tokens",
    "labels",
    "loss_mask",
    "position_ids",
    "cu_seqlens",
    "cu_seqlens_padded",
    "pixel_values",
    "image_grid_thw",
)
"""Arrays of a batch that decide what is learned, in the order in which they are hashed."""

DIGEST_BYTES = 32


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BatchAccount:
    """Counts of one batch. One that does not balance cannot be made."""

    counts: NDArray[np.int64]
    """Sources by `FIELDS`."""

    slots: int
    """Positions of the batch: sequences times context."""

    ending: int
    """Padding behind the last document of a sequence."""

    aligning: int
    """Padding between documents, which the parallel layout asks for."""

    drawn: NDArray[np.int64]
    """[n, 2]: source and ordinal, from 0, of every sample whose first part lies here."""

    digest: bytes
    """Of the arrays that the model reads, by `digest_of`."""

    dropped: Mapping[tuple[int, str], tuple[int, int]] = field(
        default_factory=dict[tuple[int, str], tuple[int, int]]
    )
    """Samples and tokens by source and reason that were met on the way here and never packed. A
    part of a sample that is packed otherwise counts its tokens and no sample."""

    def __post_init__(self) -> None:
        tokens = int(self.counts[:, TOKENS].sum())
        if tokens + self.ending + self.aligning != self.slots:
            raise RuntimeError(
                f"A batch of {self.slots} positions holds {tokens} tokens and "
                f"{self.ending} + {self.aligning} of padding. This is a defect of the stream; "
                "nothing that was trained on this batch can be accounted for."
            )
        samples = int(self.counts[:, SAMPLES].sum())
        if samples != len(self.drawn):
            raise RuntimeError(
                f"A batch counts {samples} samples and names {len(self.drawn)}. This is a defect "
                "of the stream; what a run has seen cannot be told from it."
            )


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """BLAKE2b of the arrays named in `DIGESTED` that are there, with their types and shapes."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name in DIGESTED:
        array = arrays.get(name)
        if array is not None:
            state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            state.update(np.ascontiguousarray(array).data)
    return state.digest()


@dataclass(slots=True)
class Chain:
    """A hash over all batches that a rank has read, in order: equal chains, equal streams.

    h(0) is 32 zero bytes, h(n) = BLAKE2b-256(h(n - 1) || digest of batch n).
    """

    batches: int = 0
    value: bytes = bytes(DIGEST_BYTES)

    def add(self, digest: bytes) -> None:
        """Append a batch by its digest."""
        self.value = hashlib.blake2b(self.value + digest, digest_size=DIGEST_BYTES).digest()
        self.batches += 1

    def state(self) -> dict[str, int | str]:
        """What a checkpoint keeps of it."""
        return {"batches": self.batches, "value": self.value.hex()}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """The chain of a checkpoint."""
        return cls(batches=int(state["batches"]), value=bytes.fromhex(state["value"]))
