"""Shares: from weights to what each source makes up of a stream, and what its caps leave of it."""

import math
from collections.abc import Sequence
from typing import Literal

type Basis = Literal["sample", "token", "loss_token"]
"""What shares are shares of."""

TOLERANCE = 1e-9
"""Of sums of shares: far above the rounding of a few thousand additions, far below any share."""


def shares(weights: Sequence[float], most: Sequence[float | None]) -> list[float] | None:
    """Each source's share of the stream, in proportion to its weight and at most `most`.

    What a source may not take goes to the others, in proportion to their weights.

    Returns:
        Shares that add up to 1; None where the sources with a weight may not fill the stream.
    """
    result = [0.0] * len(weights)
    free = [at for at, weight in enumerate(weights) if weight > 0]
    left = 1.0
    while free:
        total = math.fsum(weights[at] for at in free)
        capped = {
            at: most_at
            for at in free
            if (most_at := most[at]) is not None and left * (weights[at] / total) > most_at
        }
        if not capped:
            for at in free:
                result[at] = left * (weights[at] / total)
            return result
        for at, most_at in capped.items():
            result[at] = most_at
        left -= math.fsum(capped.values())
        free = [at for at in free if at not in capped]
    return result if left < TOLERANCE and any(result) else None
