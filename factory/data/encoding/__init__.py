"""Encoding: canonical samples to tokens, with the loss that a dataset's policy asks for.

A sample is rendered into runs (`plain`, `qwen`, `qwen35`), which say of every character whose it
is; `align` makes tokens of them, of which each carries loss or not; `overflow` cuts what is longer
than a context. `load` finds tokenizers on this machine. Nothing here needs torch, or a network.
"""

from factory.data.encoding.encoded import Encoded, Place, Refused, expanded
from factory.data.encoding.encoder import Encoder
from factory.data.encoding.load import load
from factory.data.encoding.overflow import Fitting, Sequence, fitted
from factory.data.encoding.tokenizer import Tokenizer

__all__ = [
    "Encoded",
    "Encoder",
    "Fitting",
    "Place",
    "Refused",
    "Sequence",
    "Tokenizer",
    "expanded",
    "fitted",
    "load",
]
