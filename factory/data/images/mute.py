"""Silence around C libraries: libtiff, OpenJPEG and GDCM write what they meet to the error stream.

It would flood the log of a step, and may quote a private file. `identifiers.quiet` silences the
Python side, warnings and log records, and is part of this.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager

from factory.data.identifiers.quiet import quiet

_ERRORS = 2
"""File descriptor of the error stream."""


@contextmanager
def muted() -> Generator[None]:
    """Nothing that a decoder says leaves this block. One thread at a time is in it."""
    with quiet():
        before = os.dup(_ERRORS)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, _ERRORS)
        try:
            yield
        finally:
            os.dup2(before, _ERRORS)
            os.close(before)
            os.close(nothing)
