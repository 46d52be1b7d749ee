"""Pictures: the pixels of a batch's images, and the positions of its tokens in three coordinates.

Images are decoded here, in the loader worker that makes the batch, and nowhere before.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding.images import Grid, ImageProcessor
from factory.data.encoding.mrope import AXES, positions
from factory.data.packing import Span
from factory.data.stream.collate import Collated

PICTURES = ("pixel_values", "image_grid_thw")


def with_pictures(made: Collated, processor: ImageProcessor) -> dict[str, NDArray[Any]]:
    """The arrays of a batch for a model that sees images.

    `position_ids` become [3, positions]; `pixel_values` [patches, values] and `image_grid_thw`
    [images, 3] are there if an image is, in the order of their places.
    """
    arrays = dict(made.arrays)
    ids = np.tile(arrays["position_ids"], (AXES, 1))
    values: list[NDArray[np.float32]] = []
    grids: list[Grid] = []
    for drawn, sequence, _, (start, stop), at in made.documents:
        shown: list[tuple[Span, Grid]] = []
        for place in sequence.images:
            pixels = processor.pixels(drawn.images[place.image])
            values.append(pixels.values)
            grids.append(pixels.grid)
            shown.append((place.pad, pixels.grid))
        if shown:
            ids[:, at : at + stop - start] = positions(stop - start, shown, processor.merge)
    arrays["position_ids"] = ids
    if grids:
        arrays["pixel_values"] = np.concatenate(values)
        arrays["image_grid_thw"] = np.array(grids, dtype=np.int64)
    return arrays
