"""Drift: how far a share may be from the declared one before someone is told.

The band is the larger of one percentage point and three standard deviations. The deviation is that
of drawing whole samples at random: with q(j) the share of source j among n samples, m(j) its mean
size and p the declared shares, the share of source i of all that was seen has the variance

    sum over j of q(j) m(j)^2 ([i = j] - p(i))^2  /  (n (sum over j of q(j) m(j))^2)

to first order (the delta method for a ratio of means), which is p(1 - p) / n where all sizes are
equal. Sizes also vary within a source, which the sampler corrects for; it keeps closer to
the shares than chance does, so an alarm says that something is wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factory.data.mixing.shares import Basis
from factory.data.stream.account import LOSS_TOKENS, SAMPLES, TOKENS
from factory.observe.mixture.totals import share

POINT = 0.01
"""The least half width of a band: one percentage point."""

DEVIATIONS = 3.0

COLUMN: dict[Basis, int] = {"sample": SAMPLES, "token": TOKENS, "loss_token": LOSS_TOKENS}


@dataclass(frozen=True, slots=True)
class Judged:
    """A share beside the declared one."""

    realized: float
    declared: float
    band: float
    """Half of its width."""

    @property
    def within(self) -> bool:
        """Whether the share is in the band."""
        return abs(self.realized - self.declared) <= self.band


def judged(counts: NDArray[np.int64], declared: Sequence[float], basis: Basis) -> list[Judged]:
    """Each source's share of what was counted, held against the declared one.

    Args:
        counts: sources by the columns of a `BatchAccount`, at least.
        declared: share of each source, in the basis.
        basis: what shares are shares of.
    """
    amounts = counts[:, COLUMN[basis]].astype(float)
    realized = share(amounts)
    bands = _bands(amounts, counts[:, SAMPLES].astype(float), np.asarray(declared, float))
    return [
        Judged(float(one), float(wanted), float(band))
        for one, wanted, band in zip(realized, declared, bands, strict=True)
    ]


def _bands(
    amounts: NDArray[np.float64], samples: NDArray[np.float64], declared: NDArray[np.float64]
) -> NDArray[np.float64]:
    number = samples.sum()
    if not number:
        return np.ones_like(declared)
    overall = max(amounts.sum() / number, math.ulp(1.0))
    size = np.where(amounts > 0, amounts / np.maximum(samples, 1.0), overall)
    chance = share(declared / size)
    spread = chance * size**2
    own = (np.eye(len(declared)) - declared[:, None]) ** 2  # of source i, by what was drawn
    variance = (own @ spread) / (number * max((chance @ size) ** 2, math.ulp(1.0)))
    return np.maximum(POINT, DEVIATIONS * np.sqrt(variance))
