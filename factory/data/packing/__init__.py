"""Packing: pieces of samples into sequences of the context's length, counted exactly.

Everything here is a function of its arguments: no clock, no global generator, no torch.
`packing` holds the parameters, `knapsack` says which lengths go together, `pack` what a sequence
of several documents is, `packer` joins the three, `account` counts, and `overflow` decides what
becomes of a sample that is longer than the context. Tokens and losses are made in `encoder`.
"""

from factory.data.packing.account import Account, Dropped
from factory.data.packing.overflow import Breaks, Fitted, Kept, Overflow, Span, fit
from factory.data.packing.pack import Boundaries, Pack, Piece, Segment
from factory.data.packing.packer import Packed, admit, groups, lay_out, pack, stream
from factory.data.packing.packing import Packing, Regime, alignment

__all__ = [
    "Account",
    "Boundaries",
    "Breaks",
    "Dropped",
    "Fitted",
    "Kept",
    "Overflow",
    "Pack",
    "Packed",
    "Packing",
    "Piece",
    "Regime",
    "Segment",
    "Span",
    "admit",
    "alignment",
    "fit",
    "groups",
    "lay_out",
    "pack",
    "stream",
]
