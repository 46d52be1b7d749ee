"""`Packing`: the parameters of packing, and the alignment that a parallel layout asks for."""

import math
from dataclasses import dataclass
from typing import get_args

from factory.data.mix_words import Regime
from factory.errors import DeclarationError


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """How pieces become sequences. Equal parameters and equal buffers give equal packs."""

    context: int
    """Positions of one sequence."""

    regime: Regime = "boundary_aware"
    """`none`: one piece a sequence. `naive`: concatenated and cut at the context, so that tokens
    attend over documents. `boundary_aware`: no piece is cut, and each attends to itself alone."""

    buffer: int = 1024
    """Pieces that are packed together. None waits longer than its buffer."""

    seed: int = 0
    """Of the order in which the packs of a buffer are emitted."""

    alignment: int = 1
    """Each document begins at a multiple of it; see `alignment()`."""

    def __post_init__(self) -> None:
        for name in ("context", "buffer", "alignment"):
            value = getattr(self, name)
            if value < 1:
                raise DeclarationError(f"packing: {name} is {value}; it is a number above 0.")
        if self.seed < 0:
            raise DeclarationError(f"packing: seed is {self.seed}; it is 0 or a number above 0.")
        if self.context % self.alignment:
            raise DeclarationError(
                f"packing: context {self.context} is no multiple of the alignment "
                f"{self.alignment}, so a full sequence could not be divided among the ranks. "
                f"The nearest below is {self.context - self.context % self.alignment}."
            )
        if self.regime not in get_args(Regime.__value__):
            raise DeclarationError(
                f"packing: regime is {self.regime!r}; write one of "
                f"{', '.join(get_args(Regime.__value__))}."
            )

    @property
    def crossing(self) -> bool:
        """Whether tokens attend over documents: a whole pack is then one document."""
        return self.regime == "naive"


def alignment(
    *,
    context_parallel: int = 1,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    multiple: int = 1,
) -> int:
    """What each document's length is rounded up to, as Megatron-Bridge asks for it.

    Context parallelism cuts every document into two slices a rank. Sequence parallelism divides
    what a context-parallel rank holds among the tensor-parallel ranks. `multiple` is for kernels
    that ask for more, 16 with FP8 for instance.
    """
    slices = 2 * context_parallel if context_parallel > 1 else 1
    shares = context_parallel * tensor_parallel if sequence_parallel and tensor_parallel > 1 else 1
    return math.lcm(slices, shares, multiple)


def aligned(length: int, alignment: int) -> int:
    """The length, rounded up to a multiple of the alignment."""
    return -(-length // alignment) * alignment
