"""Packing: pieces of samples into sequences of the context's length, counted exactly.

Everything here is a function of its arguments: no clock, no global generator, no torch.
`packing` holds the parameters, `knapsack` says which lengths go together, `pack` what a sequence
of several documents is, `packer` joins the three, and `overflow` decides what becomes of a sample
that is longer than the context. Tokens and losses are made in `encoder`.
"""

from factory.data.packing.overflow import Breaks, Fitted, Kept, Overflow, Span, fit
from factory.data.packing.pack import Boundaries, Pack, Segment
from factory.data.packing.packer import groups, lay_out
from factory.data.packing.packing import Packing, Regime, alignment

__all__ = [
    "Boundaries",
    "Breaks",
    "Fitted",
    "Kept",
    "Overflow",
    "Pack",
    "Packing",
    "Regime",
    "Segment",
    "Span",
    "alignment",
    "fit",
    "groups",
    "lay_out",
]
