"""A curve and bars in text: small enough for a terminal, exact where they name a number."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

BLOCKS = " ▁▂▃▄▅▆▇█"
LEFT_BLOCKS = " ▏▎▍▌▋▊▉█"


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


def bars(counts: Mapping[str, int], *, width: int = 40) -> list[str]:
    """Draw counts as horizontal bars below one another, each after its name.

    Args:
        counts: by name, in order.
        width: columns of the longest bar.

    Returns:
        One line for each, names and counts aligned; what is not 0 is at least an eighth wide.
    """
    most = max(counts.values(), default=0) or 1
    name_width = max(map(len, counts), default=0)
    lines: list[str] = []
    for name, count in counts.items():
        full, eighths = divmod(max(round(count / most * width * 8), int(count > 0)), 8)
        bar = LEFT_BLOCKS[8] * full + (LEFT_BLOCKS[eighths] if eighths else "")
        lines.append(f"{name:>{name_width}} │{bar} {count:,}")
    return lines
