"""Lengths of made-up mixes of medical texts: log-normal, from a fixed seed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

type Lengths = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Lengths and components, in document order."""

CONTEXT, SEED = 4096, 20260501
COMPONENTS = (
    ("abstract", 220, 0.40, 40, 1024),
    ("clinical_note", 1225, 0.55, 120, 8192),
    ("instruction_qa", 650, 0.80, 40, 8192),
    ("full_paper", 12_000, 0.45, 2500, 65_536),
    ("tool_trace", 14_000, 0.60, 2000, 131_072),
)
"""Name, median, sigma, shortest and longest."""

NOTES, TRACES = 1, 4
MIXES = {
    "A": (0.30, 0.27, 0.13, 0.22, 0.08),
    "S": (0.60, 0.24, 0.12, 0.03, 0.01),
    "L": (0.10, 0.20, 0.10, 0.40, 0.20),
}
"""Shares of the components, by document."""


def documents(shares: Sequence[float], count: int) -> Lengths:
    """Of whole documents."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    kinds = generator.choice(len(COMPONENTS), count, p=shares)
    lengths = np.zeros(count, dtype=np.int64)
    for kind, (_, middle, sigma, least, most) in enumerate(COMPONENTS):
        drawn = np.exp(generator.normal(np.log(middle), sigma, int((kinds == kind).sum())))
        lengths[kinds == kind] = np.clip(np.rint(drawn), least, most)
    return lengths, kinds


def pieces(shares: Sequence[float], count: int) -> Lengths:
    """Of the documents, cut to at most a context."""
    lengths, kinds = documents(shares, count)
    counts = -(-lengths // CONTEXT)
    made = np.full(counts.sum(), CONTEXT)
    made[np.cumsum(counts) - 1] = lengths - (counts - 1) * CONTEXT
    return made, np.repeat(kinds, counts)
