"""The words that a declared mix and its lock share with packing and encoding.

Beside them, not in them: a declaration is imported wherever a code location loads, and packing and
encoding work on arrays.
"""

from typing import Literal

type MixRole = Literal["warmup", "domain_shift", "retention"]
"""What a dataset is in a mix for."""

type Overflow = Literal["split", "truncate_middle", "drop"]
"""What becomes of a sample that is longer than the context."""

type Regime = Literal["none", "naive", "boundary_aware"]
"""How pieces become sequences."""

type Chat = Literal["template", "plain"]
"""How conversations are written."""
