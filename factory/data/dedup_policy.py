"""What counts as a duplicate, and how hard to look: one frozen value for both phases.

It lies beside the package `dedup` because declarations hold one, and importing that package
imports Arrow. The same policy must go to the local phase (`dedup.local`) and to the reduce
(`dedup.greedy`): tables carry its fingerprint and the reduce refuses a mixture.
"""

import math
from dataclasses import dataclass

from factory.data.declared import is_number, is_whole
from factory.errors import DeclarationError

DETECTION_AT_THRESHOLD = 0.998
"""Share of pairs exactly at the threshold that must become candidates; pairs above it do better."""

FORM = 2
"""Raised when normalization, hashing or the order changes: older tables cannot be mixed in."""


@dataclass(frozen=True, kw_only=True)
class Dedup:
    """Documents whose shingle sets have a Jaccard similarity of `threshold` are duplicates."""

    threshold: float = 0.8
    shingle_tokens: int = 5
    """Words in a shingle; in scripts written without spaces each character is a token."""

    rows_per_band: int = 5
    """More rows make fewer false candidates and need more hashes for the same recall."""

    seed: int = 1

    def __post_init__(self) -> None:
        _check_types(self)
        if not 0.3 <= self.threshold <= 1:
            raise DeclarationError(
                f"A similarity threshold of {self.threshold} cannot be used: below 0.3 nearly "
                "every pair of a templated corpus is a candidate. Use 0.3 to 1."
            )
        if not 1 <= self.shingle_tokens <= 64 or not 1 <= self.rows_per_band <= 16:
            raise DeclarationError(
                f"shingle_tokens={self.shingle_tokens}, rows_per_band={self.rows_per_band}: "
                "use 1 to 64 tokens and 1 to 16 rows."
            )

    @property
    def bands(self) -> int:
        """As many as it takes to find a pair at the threshold with the stated probability."""
        miss = 1 - self.threshold**self.rows_per_band
        if miss <= 0:
            return 1
        return math.ceil(math.log(1 - DETECTION_AT_THRESHOLD) / math.log(miss))

    @property
    def hashes(self) -> int:
        """Length of a signature."""
        return self.bands * self.rows_per_band

    def detection(self, similarity: float) -> float:
        """Probability that a pair of this Jaccard similarity becomes a candidate."""
        return 1 - (1 - similarity**self.rows_per_band) ** self.bands

    @property
    def fingerprint(self) -> str:
        """Names everything that signatures depend on."""
        return (
            f"form={FORM} tokens={self.shingle_tokens} rows={self.rows_per_band} "
            f"bands={self.bands} seed={self.seed}"
        )


def _check_types(policy: Dedup) -> None:
    """A declaration is written by hand; `"0.8"` and `True` compare as no number should."""
    for name in ("threshold", "shingle_tokens", "rows_per_band", "seed"):
        value: object = getattr(policy, name)
        if not (is_number(value) if name == "threshold" else is_whole(value)):
            wanted = "a number from 0.3 to 1" if name == "threshold" else "a whole number"
            raise DeclarationError(
                f"Dedup: {name} is {value!r}; write {wanted}, or leave {name} out."
            )
