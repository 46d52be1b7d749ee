"""Code points to one 64-bit hash per token, for many documents at once, without a Python loop.

A token's hash is a polynomial in its code points modulo 2^64, taken from a running sum over the
window that holds it and then scrambled. Windows are small, so that the sums stay in the cache.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.characters import ALONE, SEPARATOR, WORD

WINDOW = 1 << 16
"""Code points summed at a time; 8 bytes each, three arrays: what a core's cache holds."""

_BASE = 0x9E3779B97F4A7C55
_MODULUS = 1 << 64


def scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all 64, in place (the finalizer of SplitMix64; a bijection)."""
    scratch = values >> np.uint64(30)
    values ^= scratch
    values *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(values, np.uint64(27), out=scratch)
    values ^= scratch
    values *= np.uint64(0x94D049BB133111EB)
    np.right_shift(values, np.uint64(31), out=scratch)
    values ^= scratch
    return values


def hashes(
    points: NDArray[Any], kinds: NDArray[np.uint8]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hash and start of every token, in order. The last code point must be a separator."""
    found: list[NDArray[np.uint64]] = []
    starts: list[NDArray[np.int64]] = []
    position = 0
    while position < len(points):
        end = _cut(kinds, position)
        tokens, where = _window(points[position:end], kinds[position:end])
        found.append(tokens)
        starts.append(where + position)
        position = end
    if not found:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return np.concatenate(found), np.concatenate(starts)


def _cut(kinds: NDArray[np.uint8], position: int) -> int:
    """The end of a window: behind a separator, so that no word is cut."""
    width = WINDOW
    while position + width < len(kinds):
        separators = np.flatnonzero(kinds[position + width // 2 : position + width] == SEPARATOR)
        if len(separators):
            return position + width // 2 + int(separators[-1]) + 1
        width *= 2
    return len(kinds)


def _window(
    points: NDArray[Any], kinds: NDArray[np.uint8]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    starts, ends = _bounds(kinds)
    rising, inverses = powers(_BASE, len(points))
    terms = points.astype(np.uint64)
    terms *= rising
    sums = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum(terms, out=sums[1:])
    tokens = sums.take(ends)
    tokens -= sums.take(starts)
    tokens *= inverses.take(starts)
    return scramble(tokens), starts


def _bounds(kinds: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First code point of each token and the one after its last."""
    word = np.empty(len(kinds) + 2, dtype=bool)
    word[0] = word[-1] = False
    np.equal(kinds, WORD, out=word[1:-1])
    edge = word[1:] != word[:-1]
    alone = kinds == ALONE
    if not alone.any():
        edges = np.flatnonzero(edge)
        return edges[0::2], edges[1::2]
    # Tokens do not overlap, so the first start belongs to the first end, and so on.
    starts, ends = edge & word[1:], edge & word[:-1]
    starts[:-1] |= alone
    ends[1:] |= alone
    return np.flatnonzero(starts), np.flatnonzero(ends)


_known: dict[int, tuple[NDArray[np.uint64], NDArray[np.uint64]]] = {}


def powers(base: int, length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Powers of the base from 0 on and of its inverse; odd numbers have one modulo 2^64."""
    known = _known.get(base)
    if known is None or len(known[0]) < length:
        size = max(length, WINDOW)
        known = (_geometric(base, size), _geometric(pow(base, -1, _MODULUS), size))
        _known[base] = known
    return known[0][:length], known[1][:length]


def _geometric(ratio: int, size: int) -> NDArray[np.uint64]:
    terms = np.full(size, ratio, dtype=np.uint64)
    terms[0] = 1
    return np.cumprod(terms, out=terms)
