"""Texts that have to be JSON: the arguments of a call, the declarations of tools."""

import json
from functools import lru_cache


def is_object(text: str) -> bool:
    """Whether a text is a JSON object; a number that is none, as in `{"a": NaN}`, makes it none."""
    try:
        return isinstance(json.loads(text, parse_constant=_no_number), dict)
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=1024)
def is_list(text: str) -> bool:
    """Whether a text is a JSON list. Conversations of a source mostly share theirs."""
    try:
        return isinstance(json.loads(text, parse_constant=_no_number), list)
    except (ValueError, RecursionError):
        return False


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
