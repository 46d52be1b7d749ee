"""The table of faults, when they struck, and what came of each run: one for all tiers."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.cluster.reckoning import COUNTED, Reckoning

type Rows = dict[tuple[str, str], list[Reckoning]]
"""By kind and moment."""


def rows_of(rows: Rows) -> Iterator[str]:
    """A row for each fault and moment, and one for all of them."""
    columns = [name.replace("_", " ") for name in COUNTED]
    yield f"| fault | when | times | how they ended | {' | '.join(columns)} |"
    yield f"|---|---|---:|---|{'---:|' * len(columns)}"
    for (kind, when), some in rows.items():
        yield _row(kind, when, some)
    yield _row("**all**", "", [found for some in rows.values() for found in some])


def on_dead_heads(some: Sequence[Reckoning]) -> int:
    """Lines that never left a head which died."""
    return sum(found.lines_left_on_a_dead_head for found in some)


def again_by_kuberay(some: Sequence[Reckoning]) -> int:
    """Drivers that KubeRay started on a new head of the same attempt."""
    return sum(found.started_again_by_kuberay for found in some)


def _row(kind: str, when: str, some: Sequence[Reckoning]) -> str:
    ends = Counter(found.end for found in some)
    told = ", ".join(f"{end}: {count}" for end, count in ends.most_common()) if when else ""
    sums = [str(sum(found.counts()[name] for found in some)) for name in COUNTED]
    return f"| {kind} | {when} | {len(some)} | {told} | {' | '.join(sums)} |"
