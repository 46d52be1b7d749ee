"""The packer: a buffer of pieces to packs and their account.

`factory.data.stream` fills the buffer and keeps it: `groups` says what is packed together,
`lay_out` what becomes of one group. A checkpoint therefore holds how pieces were drawn; packs are
made again from them, not stored.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, batched

from factory.data.packing.account import Account, Dropped
from factory.data.packing.knapsack import knapsack, order
from factory.data.packing.pack import Pack, Piece
from factory.data.packing.packing import Packing, aligned

NO_LOSS = "no loss token"
TOO_LONG = "longer than the context"


@dataclass(frozen=True, slots=True)
class Packed:
    """The packs of one buffer, in the order in which they are trained on."""

    packs: tuple[Pack, ...]
    account: Account


def stream(pieces: Iterable[Piece], packing: Packing) -> Iterator[Packed]:
    """Pack buffer after buffer; each is emptied before the next one is read."""
    for buffer in batched(pieces, packing.buffer):
        yield pack(buffer, packing)


def pack(pieces: Sequence[Piece], packing: Packing) -> Packed:
    """Pack one buffer: a function of the parameters and of the pieces in their order.

    Raises:
        ValueError: a piece is over the context, or counts more loss tokens than tokens.
    """
    entering, dropped = admit(pieces, packing)
    packs: list[Pack] = []
    for group in groups([piece.tokens for piece in entering], packing):
        packs += lay_out([entering[index] for index in group], packing)
    return Packed(tuple(packs), _account(pieces, entering, dropped, packs))


def admit(
    pieces: Iterable[Piece], packing: Packing
) -> tuple[list[Piece], dict[tuple[str, str], Dropped]]:
    """The pieces that may be packed, and what is dropped by source and reason.

    Raises:
        ValueError: a piece is over the context, or counts more loss tokens than tokens.
    """
    entering: list[Piece] = []
    dropped: dict[tuple[str, str], Dropped] = {}
    context = packing.context
    for piece in pieces:
        if 0 < piece.loss_tokens <= piece.tokens <= context:
            entering.append(piece)
            continue
        name = (piece.source, _reason(piece, packing))
        count, tokens = dropped.get(name, (0, 0))
        dropped[name] = Dropped(count + 1, tokens + piece.tokens)
    return entering, dropped


def _reason(piece: Piece, packing: Packing) -> str:
    if not 0 <= piece.loss_tokens <= piece.tokens:
        raise ValueError(
            f"A piece of {piece.source} has {piece.tokens} tokens and {piece.loss_tokens} loss "
            "tokens, so its loss mask is not its own. Count both from the same sequence."
        )
    if not piece.loss_tokens:
        return NO_LOSS
    if packing.too_long == "refuse":
        raise ValueError(
            f"A piece of {piece.source} has {piece.tokens} tokens, but the context holds "
            f"{packing.context}. Give its dataset an overflow policy, or set "
            "too_long='drop' so that such pieces are dropped and counted."
        )
    return TOO_LONG


def groups(lengths: Sequence[int], packing: Packing) -> list[list[int]]:
    """Indices of the pieces by pack, in the order of emission; every index is there once.

    The regime `naive` makes one group of the whole buffer: where a pack ends within a piece, no
    grouping of pieces can say so, and `lay_out` cuts.
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


def lay_out(pieces: Sequence[Piece], packing: Packing) -> list[Pack]:
    """The pieces of one group, one behind the other: one pack, or as many as `naive` cuts.

    Raises:
        ValueError: the pieces do not fit, so they are no group that `groups` made.
    """
    if packing.crossing:
        return _cut(pieces, packing)
    unit, context = packing.alignment, packing.context
    tokens = used = sum([piece.tokens for piece in pieces])
    if unit > 1:
        used = sum([aligned(piece.tokens, unit) for piece in pieces])
    if used > context:
        raise ValueError(
            f"{len(pieces)} pieces take {used} positions, but the context holds {context}: they "
            "were grouped with other parameters. Pack the buffer again."
        )
    return [Pack(tuple(pieces), tokens, used, packing)]


def _cut(pieces: Sequence[Piece], packing: Packing) -> list[Pack]:
    """Packs of the concatenated pieces, all full but the last one, in the order of emission."""
    context, unit = packing.context, packing.alignment
    ends = [0, *accumulate(piece.tokens for piece in pieces)]
    made: list[Pack] = []
    first = 0
    for start in range(0, ends[-1], context):
        stop = min(start + context, ends[-1])
        first = bisect_right(ends, start, first) - 1
        last = bisect_left(ends, stop, first)
        made.append(
            Pack(
                tuple(pieces[first:last]),
                stop - start,
                aligned(stop - start, unit),
                packing,
                place=first,
                offset=start - ends[first],
            )
        )
    chosen = order(len(made), packing.seed, [piece.tokens for piece in pieces])
    return [made[index] for index in chosen]


def _account(
    pieces: Sequence[Piece],
    entering: Sequence[Piece],
    dropped: dict[tuple[str, str], Dropped],
    packs: Sequence[Pack],
) -> Account:
    tokens = sum([pack.tokens for pack in packs])
    slots = sum([pack.packing.context for pack in packs])
    used = sum([pack.used for pack in packs])
    return Account(
        pieces_in=len(pieces),
        tokens_in=sum(piece.tokens for piece in pieces),
        pieces=len(entering),
        tokens=tokens,
        dropped=dropped,
        packs=len(packs),
        slots=slots,
        aligning=used - tokens,
        ending=slots - used,
        cuts=sum([len(pack.pieces) for pack in packs]) - len(entering),
    )
