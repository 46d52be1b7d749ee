"""Objects: JSON values, strictly. No trailing commas, no NaN, no name twice in an object."""

import json
import math
from typing import Any

from factory.data.formats.faults import DUPLICATE_KEY, NUL, escapes, fault

BLANK = " \t\r\n"
"""What may stand between the parts of JSON."""


class NotJson(ValueError):
    """Text that is no JSON; says why, without quoting it."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.position = position
        """Character in the text, counted from 0; none where it is not known."""

    @property
    def column(self) -> int | None:
        """Counted from 1, where the text is one line."""
        return None if self.position is None else self.position + 1


class Unusable(ValueError):
    """JSON that no row can be: the reason to reject it with."""

    def __init__(self, reason: str, end: int = 0) -> None:
        super().__init__(reason)
        self.end = end
        """Where the whole value ends."""


def parse(text: str) -> Any:
    """The value of a whole text.

    Raises:
        NotJson: it is none.
        Unusable: an object in it has a name twice, or a text a NUL.
    """
    start = len(text) - len(text.lstrip(BLANK))
    value, end = parse_at(text, start)
    rest = text[end:].lstrip(BLANK)
    if rest:
        raise NotJson("something follows the value", len(text) - len(rest))
    return value


def parse_at(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at a position, and where it ends.

    Raises:
        NotJson: there is none, or it ends behind the text.
        Unusable: an object in it has a name twice, or a text a NUL.
    """
    try:
        value, end = _decoded(_STRICT, text, start)
    except Unusable as error:
        raise Unusable(str(error), _decoded(_LENIENT, text, start)[1]) from None
    except NotJson as error:
        if error.position is None or text[error.position : error.position + 1] != "\0":
            raise
        raise Unusable(NUL, _decoded(_LENIENT, text, start)[1]) from None
    bad = fault(value) if escapes(text, start, end) else None
    if bad is not None:
        raise Unusable(bad, end)
    return value, end


def _decoded(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.pos) from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except Unusable:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise Unusable(DUPLICATE_KEY)
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


_STRICT = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite
)
_LENIENT = json.JSONDecoder(strict=False)
"""Finds only where a value ends."""
