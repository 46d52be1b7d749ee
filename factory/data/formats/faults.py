"""Faults: what a row may hold that no sample can; each rejects the row, not its file."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

NUL = "NUL character in text"
SURROGATE = "lone surrogate in text"
DUPLICATE_KEY = "duplicate key in object"
NOT_UTF_8 = "text that is not UTF-8"
NO_DATE = "date or time that Python has not"

_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def escapes(json: str, start: int, end: int) -> bool:
    """Whether JSON text may hold what `fault` finds: cheap, so that most rows are not walked."""
    return json.find("\\u", start, end) >= 0 and _ESCAPED.search(json, start, end) is not None


def fault(value: Any) -> str | None:
    """Why texts anywhere in a value cannot become part of a sample; none if they can."""
    for text in _texts(value):
        if "\0" in text:
            return NUL
        try:
            text.encode()
        except UnicodeEncodeError:
            return SURROGATE
    return None


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, keys included; a stack, as nesting can be deeper than Python's."""
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            known = cast(Mapping[Any, Any], one)
            stack.extend(known.keys())
            stack.extend(known.values())
        elif isinstance(one, list | tuple):
            stack.extend(cast(list[Any], one))
