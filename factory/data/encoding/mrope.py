"""Positions of text and patches for models that turn their keys by three coordinates.

Qwen's "multimodal rotary embedding": a text token has one number, three times; a patch has the
time, row and column of its place, counted from where the text before it ends; the text behind it
goes on from the larger of its rows and columns. As `get_rope_index` of transformers, from spans
instead of tokens, so that a document in a pack is counted by itself and the GPU is never asked.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding.images import Grid
from factory.data.packing import Span

AXES = 3


def positions(length: int, images: Iterable[tuple[Span, Grid]], merge: int) -> NDArray[np.int64]:
    """[3, length]: time, row and column of every token of one document.

    Args:
        length: tokens of the document; padding behind it goes on counting.
        images: the spans of patch tokens in order, each with its grid before merging.
        merge: patches along each side of the square that becomes one token.

    Raises:
        ValueError: a grid has another number of tokens than its span.
    """
    made = np.empty((AXES, length), dtype=np.int64)
    at = following = 0
    for span, grid in images:
        rows, columns = grid.rows // merge, grid.columns // merge
        if span.stop - span.start != grid.frames * rows * columns:
            raise ValueError(
                f"An image of {grid.frames} x {rows} x {columns} tokens is given "
                f"{span.stop - span.start} places. Expand its sample with the same processor."
            )
        made[:, at : span.start] = np.arange(following, following + span.start - at)
        following += span.start - at
        places = np.indices((grid.frames, rows, columns)).reshape(AXES, -1)
        made[:, span.start : span.stop] = places + following
        following += max(rows, columns)
        at = span.stop
    made[:, at:] = np.arange(following, following + length - at)
    return made
