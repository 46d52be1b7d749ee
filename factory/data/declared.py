"""What a declaration says, before anything is done with it: it is written by hand.

A type checker may not have seen it, and Python takes `"abc"` for a list of three texts and `True`
for the number 1.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

type Demand = Callable[[object], bool]


def is_number(value: object) -> bool:
    """Whether it is a number that can be reckoned with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_list(value: object, of: Demand) -> bool:
    """Whether it is a list or tuple of such values."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and all(map(of, cast(Sequence[object], value)))
    )


def is_mapping(value: object, of: Demand) -> bool:
    """Whether it gives such values by name."""
    if not isinstance(value, Mapping):
        return False
    pairs = cast("Mapping[object, object]", value).items()
    return all(isinstance(name, str) and of(one) for name, one in pairs)
