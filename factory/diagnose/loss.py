"""Did the loss fall? From the step lines of a run, with a margin that noise cannot give."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from factory.errors import RunFailed

MINIMUM_STEPS = 10
"""Two lines in each fifth: the fewest that have a variance."""

STANDARD_ERRORS = 6.0
"""How many standard errors the fall must exceed. Six leave about one in a billion to chance for
independent normal noise; losses of neighbouring steps are correlated, which is why it is not three."""


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
    if len(losses) < MINIMUM_STEPS:
        raise RunFailed(
            f"{len(losses)} losses were reported; it takes {MINIMUM_STEPS} to say whether they fall."
        )
    for step, loss in enumerate(losses, start=1):
        if not math.isfinite(loss):
            raise RunFailed(f"The loss of line {step} is {loss}: the run has diverged.")
    fifth = len(losses) // 5
    first, last = losses[:fifth], losses[-fifth:]
    error = math.sqrt(variance(first) / fifth + variance(last) / fifth)
    return LossTrend(fmean(first), fmean(last), STANDARD_ERRORS * error)
