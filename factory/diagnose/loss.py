"""Did the loss fall? From the step lines of a run, with a margin that noise cannot give."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from factory.errors import RunFailed

MINIMUM_LINES = 10
"""Two lines in each fifth: fewer are not a mean."""

NORMAL_MEDIAN = 0.6745 * math.sqrt(2)
"""Median of |a - b| over the standard deviation, for two draws of one normal distribution."""

STANDARD_ERRORS = 6.0
"""How many standard errors the fall must exceed. Six leave one in a billion to chance for
independent normal noise; losses of neighbouring steps are correlated, so it is not three."""


@dataclass(frozen=True)
class LossTrend:
    """Mean loss in the first and the last fifth of a run, in nats per token."""

    first: float
    last: float
    margin: float
    """The fall that noise could give: `STANDARD_ERRORS` of the difference of the two means."""

    @property
    def fell(self) -> bool:
        """Whether the loss fell by more than noise can give."""
        return self.first - self.last > self.margin


def loss_trend(losses: Sequence[float]) -> LossTrend:
    """Compare the last fifth of a run with its first fifth.

    Raises:
        RunFailed: a loss is not a number, or there are too few of them to tell.
    """
    if len(losses) < MINIMUM_LINES:
        raise RunFailed(
            f"{len(losses)} losses were reported; it takes {MINIMUM_LINES} to say if they fall."
        )
    for step, loss in enumerate(losses, start=1):
        if not math.isfinite(loss):
            raise RunFailed(f"The loss of line {step} is {loss}: the run has diverged.")
    fifth = len(losses) // 5
    first, last = losses[:fifth], losses[-fifth:]
    # Noise is what neighbouring lines differ by. The variance within a fifth would count the fall
    # itself as noise, and the median leaves out the few steps at the start that fall the most.
    noise = median(abs(a - b) for a, b in pairwise(losses)) / NORMAL_MEDIAN
    return LossTrend(fmean(first), fmean(last), STANDARD_ERRORS * noise * math.sqrt(2 / fifth))
