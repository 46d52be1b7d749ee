"""What a person is to write, in plain words, where pydantic refuses a value.

By the type of pydantic's error; one that is not here keeps pydantic's own words. Those who know the
fields that there are say themselves what is unknown or missing.
"""

from collections.abc import Callable, Mapping
from typing import Any

from factory.control.clusters.words import PATTERNS

_NUMBER = "write a whole number"
_FIELDS = "write fields below it"
_WORDS: dict[str, str] = {
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "dict_type": _FIELDS,
    "finite_number": "write a finite number",
    "float_parsing": "write a number, without a unit",
    "float_type": "write a number",
    "int_from_float": _NUMBER,
    "int_parsing": _NUMBER,
    "int_parsing_size": f"{_NUMBER} of fewer digits",
    "int_type": _NUMBER,
    "invalid_key": "write a text",
    "list_type": "write a list",
    "model_attributes_type": _FIELDS,
    "model_type": _FIELDS,
    "string_type": "write a text",
}
_OF_LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda ctx: f"write more than {_number(ctx['gt'])}",
    "greater_than_equal": lambda ctx: f"write {_number(ctx['ge'])} or more",
    "less_than": lambda ctx: f"write less than {_number(ctx['lt'])}",
    "less_than_equal": lambda ctx: f"write {_number(ctx['le'])} or less",
    "literal_error": lambda ctx: _choice(str(ctx["expected"])),
    "string_too_long": lambda ctx: f"write at most {_count(ctx['max_length'])} characters",
    "string_too_short": lambda ctx: f"write at least {_count(ctx['min_length'])} characters",
    "too_long": lambda ctx: f"write at most {_count(ctx['max_length'])}",
    "too_short": lambda ctx: f"write at least {_count(ctx['min_length'])}",
}
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (dict, "fields"),
    (list, "a list"),
    (str, "a text"),
    ((int, float), "a number"),
    (type(None), "nothing"),
)


def what_to_write(error: Mapping[str, Any]) -> str:
    """The words for one of `ValidationError.errors()`, without a full stop."""
    kind, ctx = error["type"], error.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _OF_LIMITS:
        return _OF_LIMITS[kind](ctx)
    if kind == "string_pattern_mismatch" and ctx["pattern"] in PATTERNS:
        return f"write {PATTERNS[ctx['pattern']]}"
    return str(error["msg"]).removeprefix("Value error, ").rstrip(".")


def what_it_holds(content: object) -> str:
    """What is in a file that should have held fields."""
    return next((words for kind, words in _KINDS if isinstance(content, kind)), "one value")


def _choice(expected: str) -> str:
    """`'kai' or 'default'` as one would write them in a file."""
    named = expected.replace("'", "").replace(" or ", ", ")
    if named in ("True", "False"):
        return f"write {named.lower()}"
    return f"write one of {named}" if ", " in named else f"write {named}"


def _number(limit: float) -> str:
    return str(int(limit) if float(limit).is_integer() else limit)


def _count(number: int) -> str:
    return "one" if number == 1 else f"{number:,}"
