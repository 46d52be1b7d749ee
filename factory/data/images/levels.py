"""Levels: numbers of any width to the 8 bits of an image.

Values of up to 16 bits go through a table, so that a large image needs little more memory than its
pixels; wider ones and fractions are worked off in blocks of rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from factory.data.images.reasons import NO_NUMBERS
from factory.errors import BadRow

type Values = npt.NDArray[Any]
type Bytes = npt.NDArray[np.uint8]
type Curve = Callable[[Values], npt.NDArray[np.float64]]
"""Stored values to brightness, 0 to 255; what lies outside is clipped."""

_TABLE_ENTRIES = 1 << 16
_BLOCK_VALUES = 1 << 20


def to_bytes(values: Values, curve: Curve) -> Bytes:
    """Every value through the curve, rounded to 8 bits.

    Raises:
        BadRow: the result holds something that is no number.
    """
    if values.dtype.kind in "iub":
        low, high = int(values.min()), int(values.max())
        if high - low < _TABLE_ENTRIES:
            table = _rounded(curve(np.arange(low, high + 1)))
            return table[values.astype(np.int64) - low]
    result = np.empty(values.shape, np.uint8)
    rows = max(1, _BLOCK_VALUES // max(1, values[0].size))
    for start in range(0, len(values), rows):
        block = slice(start, start + rows)
        result[block] = _rounded(curve(values[block]))
    return result


def linear(low: float, high: float) -> Curve:
    """From black at `low` to white at `high`."""
    width = high - low

    def curve(values: Values) -> npt.NDArray[np.float64]:
        if width <= 0:
            return np.zeros(values.shape)
        return (values.astype(np.float64) - low) / width * 255

    return curve


def extent(values: Values) -> tuple[float, float]:
    """The smallest and the largest value.

    Raises:
        BadRow: one of them is no number.
    """
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(low) or not np.isfinite(high):
        raise BadRow(NO_NUMBERS)
    return low, high


def _rounded(levels: npt.NDArray[np.float64]) -> Bytes:
    if not np.isfinite(levels).all():
        raise BadRow(NO_NUMBERS)
    return np.rint(levels.clip(0, 255)).astype(np.uint8)
