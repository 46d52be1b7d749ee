"""Overrides: what a run may change in its recipe, and how text becomes a value of a field.

The fields of every recipe are listed in `factory/training/recipes/fields.json`, so that a launch is
checked without importing the trainer. Setting them on a configuration is `factory.training.assign`.
"""

import difflib
import math
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel
from pydantic import Field as Described

from factory.errors import SpecError

type Value = bool | int | float | str | None

NEAREST = 3
_WORDS: Mapping[str, bool] = {"true": True, "false": False}


class Field(BaseModel, frozen=True, extra="forbid"):
    """One field of a recipe's configuration that a run may set."""

    type: Literal["bool", "int", "float", "str", "choice"] = Described(description="What it takes.")
    default: Value = Described(description="What the recipe sets.")
    optional: bool = Described(default=False, description="Whether `none` is a value.")
    minimum: float | None = Described(default=None, description="Smallest value, included.")
    maximum: float | None = Described(default=None, description="Largest value, included.")
    choices: list[str] = Described(default_factory=list, description="Values of a choice.")


def parse(path: str, text: str, field: Field) -> Value:
    """The value that a text stands for.

    Raises:
        SpecError: the text is not of the field's type, or outside its range.
    """
    if field.optional and text.strip().lower() == "none":
        return None
    value = _typed(path, text.strip(), field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(path, value, field)
    return value


def parse_all(
    recipe: str, overrides: Mapping[str, str], fields: Mapping[str, Field]
) -> dict[str, Value]:
    """Every override as a value.

    Raises:
        SpecError: an unknown path, or a value its field cannot have; all that is wrong, one a line.
    """
    values: dict[str, Value] = {}
    problems: list[str] = []
    for path, text in overrides.items():
        try:
            values[path] = parse(path, text, _field(recipe, path, fields))
        except SpecError as problem:
            problems.append(str(problem))
    if problems:
        raise SpecError("\n".join(problems))
    return values


def _typed(path: str, text: str, field: Field) -> Value:
    refused = SpecError(f"{path} takes {_takes(field)}, not {text!r}. Recipe: {field.default}.")
    if field.type == "str":
        return text
    if field.type == "choice":
        if text not in field.choices:
            raise refused
        return text
    if field.type == "bool":
        if text.lower() not in _WORDS:
            raise refused
        return _WORDS[text.lower()]
    try:
        number = int(text) if field.type == "int" else float(text)
    except ValueError:
        raise refused from None
    if not math.isfinite(number):
        raise refused
    return number


def _check_range(path: str, value: float, field: Field) -> None:
    low, high = field.minimum, field.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        raise SpecError(
            f"{path} is {_number(value)}; it takes {_takes(field)}. Recipe: {field.default}."
        )


def _takes(field: Field) -> str:
    kinds = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
    words = kinds.get(field.type) or f"one of {', '.join(field.choices)}"
    low, high = field.minimum, field.maximum
    if low is not None and high is not None:
        words += f" from {_number(low)} to {_number(high)}"
    elif low is not None:
        words += f" from {_number(low)}"
    elif high is not None:
        words += f" up to {_number(high)}"
    return f"{words} or none" if field.optional else words


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def _field(recipe: str, path: str, fields: Mapping[str, Field]) -> Field:
    if path in fields:
        return fields[path]
    last = path.rpartition(".")[2]
    same = [name for name in fields if name.rpartition(".")[2] == last]
    close = difflib.get_close_matches(path, fields, n=NEAREST, cutoff=0.6)
    nearest = list(dict.fromkeys([*same, *close]))[:NEAREST]
    meant = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise SpecError(f"{recipe} has no field {path!r} that a run may set.{meant}")
