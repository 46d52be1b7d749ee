"""A curve in text: small enough for a terminal, exact at both ends."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

BLOCKS = " ▁▂▃▄▅▆▇█"


def curve(values: Sequence[float], *, width: int = 60, height: int = 8) -> list[str]:
    """Draw values as columns of block characters, highest value at the top.

    Args:
        values: finite numbers in order; neighbours are averaged when there are more than `width`,
            each is drawn several columns wide when there are fewer than half of it.
        width: columns at most.
        height: rows.

    Returns:
        `height` lines, each with its lower bound on the left.
    """
    columns = _columns(values, width)
    low, high = min(columns), max(columns)
    span = (high - low) or 1.0
    eighths = [round((value - low) / span * (height * 8 - 1)) + 1 for value in columns]
    lines: list[str] = []
    for row in reversed(range(height)):
        bars = "".join(BLOCKS[min(8, max(0, level - row * 8))] for level in eighths)
        lines.append(f"{low + span * row / height:7.2f} │{bars}")
    return lines


def _columns(values: Sequence[float], width: int) -> list[float]:
    count = min(width, len(values))
    edges = [round(index * len(values) / count) for index in range(count + 1)]
    repeat = max(1, width // count)
    return [fmean(values[start:end]) for start, end in pairwise(edges) for _ in range(repeat)]
