"""The packer: lengths to groups, and each group to packs.

`factory.data.stream` fills the buffer and keeps it: `groups` says what is packed together,
`lay_out` what becomes of one group. A checkpoint therefore holds how pieces were drawn; packs are
made again from them, not stored.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from factory.data.packing.knapsack import knapsack, order
from factory.data.packing.pack import Pack
from factory.data.packing.packing import Packing, aligned


def groups(lengths: Sequence[int], packing: Packing) -> list[list[int]]:
    """Indices of the pieces by pack, in the order of emission; every index is there once.

    A function of the parameters and of the lengths in their order. The regime `naive` makes one
    group of the whole buffer: where a pack ends within a piece, no grouping of pieces can say so,
    and `lay_out` cuts.
    """
    if packing.crossing:
        return [list(range(len(lengths)))] if lengths else []
    if packing.regime == "none":
        made = [[index] for index in range(len(lengths))]
    else:
        unit = packing.alignment
        sizes = lengths if unit == 1 else [aligned(length, unit) for length in lengths]
        made = knapsack(sizes, packing.context)
    return [made[index] for index in order(len(made), packing.seed, lengths)]


def lay_out(lengths: Sequence[int], packing: Packing) -> list[Pack]:
    """The pieces of one group, one behind the other: one pack, or as many as `naive` cuts.

    Raises:
        ValueError: the pieces do not fit, so they are no group that `groups` made.
    """
    if packing.crossing:
        return _cut(lengths, packing)
    unit, context = packing.alignment, packing.context
    tokens = used = sum(lengths)
    if unit > 1:
        used = sum([aligned(length, unit) for length in lengths])
    if used > context:
        raise ValueError(
            f"{len(lengths)} pieces take {used} positions, but the context holds {context}: they "
            "were grouped with other parameters. Pack the buffer again."
        )
    return [Pack(tuple(lengths), tokens, used, packing)]


def _cut(lengths: Sequence[int], packing: Packing) -> list[Pack]:
    """Packs of the concatenated pieces, all full but the last one, in the order of emission."""
    context, unit = packing.context, packing.alignment
    ends = [0, *accumulate(lengths)]
    made: list[Pack] = []
    first = 0
    for start in range(0, ends[-1], context):
        stop = min(start + context, ends[-1])
        first = bisect_right(ends, start, first) - 1
        last = bisect_left(ends, stop, first)
        made.append(
            Pack(
                tuple(lengths[first:last]),
                stop - start,
                aligned(stop - start, unit),
                packing,
                place=first,
                offset=start - ends[first],
            )
        )
    return [made[index] for index in order(len(made), packing.seed, lengths)]
