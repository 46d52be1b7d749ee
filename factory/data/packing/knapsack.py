"""Which lengths share a pack: the greedy knapsack, and the order in which packs are emitted.

Each pack takes the longest piece that still fits, until none does. On one buffer this makes the
same packs as first-fit-decreasing; it needs no search over open packs. As made, packs come
longest pieces first, which would give batches of nothing but papers and batches of nothing but
notes: `order` spreads them over the buffer.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def knapsack(lengths: Sequence[int], context: int) -> list[list[int]]:
    """Indices of the lengths, grouped; no group's sum is above `context`.

    Lengths are from 1 to `context`. Which lengths share a group does not depend on their order;
    of equal lengths the first one goes first. O(n log n).
    """
    ascending = np.argsort(np.asarray(lengths, dtype=np.int64), kind="stable")
    pieces: list[int] = ascending.tolist()
    sizes, first = np.unique(np.asarray(lengths, dtype=np.int64)[ascending], return_index=True)
    # A size of 0 in front means that nothing fits.
    size: list[int] = [0, *sizes.tolist()]
    following: list[int] = [0, *first.tolist()]
    stop = [*following[1:], len(pieces)]
    available = list(range(len(size)))
    made: list[list[int]] = []
    largest = len(size) - 1
    while (largest := _available(available, largest)) > 0:
        group: list[int] = []
        room, kind = context, largest
        while kind:
            at = following[kind]
            group.append(pieces[at])
            following[kind] = at + 1
            if at + 1 == stop[kind]:
                available[kind] = kind - 1
            room -= size[kind]
            kind = bisect_right(size, room, 0, kind + 1) - 1
            if available[kind] != kind:
                kind = _available(available, kind)
        made.append(group)
    return made


def _available(available: list[int], kind: int) -> int:
    """The largest size up to `kind` of which a piece is left; halves the path on the way."""
    while available[kind] != kind:
        available[kind] = available[available[kind]]
        kind = available[kind]
    return kind


GOLDEN = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: its multiples spread over the circle as evenly as any."""

NEIGHBOURS = 8
"""Packs alike enough to change places at random."""


def order(count: int, seed: int, lengths: Sequence[int]) -> list[int]:
    """A permutation of `count` packs that depends on the seed and on the buffer's lengths.

    Packs that were made one after the other are alike, and a batch should have some of each sort.
    So neighbours change places at random, and the n-th pack then goes to n golden sections of a
    circle that begins anywhere: a stretch of the result of any length takes evenly from the whole.
    A plain shuffle leaves to chance what this does not; batches vary a sixth more.
    All is integers from raw draws of PCG64, whose stream NumPy keeps over releases.
    """
    content = np.sort(np.asarray(lengths, dtype="<i8")).tobytes()
    digest = hashlib.blake2b(content, digest_size=16).digest()
    source = np.random.PCG64(np.random.SeedSequence([seed, int.from_bytes(digest, "little")]))
    draws: NDArray[np.uint64] = source.random_raw(count + 1)
    places = np.arange(count, dtype=np.uint64)
    nearby = np.lexsort((draws[1:], places // np.uint64(NEIGHBOURS)))
    return nearby[np.argsort(places * np.uint64(GOLDEN) + draws[0])].tolist()
