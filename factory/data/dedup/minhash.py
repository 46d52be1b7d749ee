"""Shingle hashes to MinHash band keys: a typed array interface over `rensa`, which has none.

Its wheel has no type stubs and hands signatures out as Python lists only, so they are converted a
few documents at a time and reduced at once to one 64-bit key per band. Which documents share a key:
`candidates.py`.
"""

from array import array
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from factory.data.dedup.words import scramble
from factory.data.dedup_policy import Dedup

CHUNK = 500
"""Documents converted at a time. Lists of all rows at once cost a third more time, and memory."""


def keys(
    shingles: NDArray[np.uint64], offsets: NDArray[np.int64], policy: Dedup
) -> NDArray[np.uint64]:
    """One row of band keys per document; document i has `shingles[offsets[i] : offsets[i + 1]]`."""
    found = np.empty((len(offsets) - 1, policy.bands), dtype=np.uint64)
    for start in range(0, len(found), CHUNK):
        bounds = offsets[start : start + CHUNK + 1]
        part = shingles[bounds[0] : bounds[-1]]
        rows = signatures(part, bounds - bounds[0], policy.hashes, policy.seed)
        found[start : start + CHUNK] = band_keys(rows, policy)
    return found


def signatures(
    shingles: NDArray[np.uint64], offsets: NDArray[np.int64], hashes: int, seed: int
) -> NDArray[np.uint32]:
    """One row of minima per document, for a few documents."""
    from rensa import RMinHash  # pyright: ignore[reportAttributeAccessIssue]

    digest: Any = RMinHash.digest_matrix_from_flat_token_hashes
    matrix = digest(shingles, offsets.astype(np.uint64), hashes, seed)
    rows = cast("list[list[int]]", matrix.to_rows())
    # Through array.array: a third less time than numpy takes for lists of numbers.
    flat = b"".join(array("I", row).tobytes() for row in rows)
    return np.frombuffer(flat, np.uint32).reshape(len(offsets) - 1, hashes)


def band_keys(rows: NDArray[np.uint32], policy: Dedup) -> NDArray[np.uint64]:
    """One key per document and band; equal keys mean equal rows of the band."""
    parts = rows.reshape(len(rows), policy.bands, policy.rows_per_band)
    keys = np.zeros((len(rows), policy.bands), dtype=np.uint64)
    for row in range(policy.rows_per_band):
        keys ^= parts[:, :, row]
        scramble(keys)
    return keys
