"""Recipes, read and never imported: they need the trainer."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from factory.discovery.files import parsed
from factory.errors import SpecError
from factory.overrides import Field, Value, parse_all

RECIPES = Path(__file__).parents[1] / "training" / "recipes"
FIELDS = RECIPES / "fields.json"
"""Written by `python -m factory.training.recipes.fields`."""


def recipe_names() -> list[str]:
    """Every recipe as `module.function`, found without importing one."""
    return [
        f"{file.stem}.{node.name}"
        for file in sorted(RECIPES.glob("*.py"))
        if file.stem not in ("__init__", "fields") and not file.stem.startswith("_")
        for node in parsed(file).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]


def recipe_fields(recipe: str) -> Mapping[str, Field]:
    """The fields of a recipe that a run may override, by path.

    Raises:
        SpecError: there is no such recipe, or its fields have not been listed.
    """
    if recipe not in recipe_names():
        raise SpecError(f"No recipe {recipe!r}. Known: {', '.join(recipe_names())}.")
    listed = _listed_fields()
    if recipe not in listed:
        raise SpecError(
            f"The fields of {recipe} are not listed in {FIELDS.name}. "
            "Run `python -m factory.training.recipes.fields` and commit the file."
        )
    return listed[recipe]


def check_overrides(recipe: str, overrides: Mapping[str, str]) -> dict[str, Value]:
    """The overrides of a run as values.

    Raises:
        SpecError: an unknown recipe or path, or a value that its field cannot have.
    """
    return parse_all(recipe, overrides, recipe_fields(recipe))


def recipe_values(recipe: str, overrides: Mapping[str, str]) -> dict[str, Value]:
    """The value of every field of a recipe that a run may override, as a run has it.

    Raises:
        SpecError: an unknown recipe or path, or a value that its field cannot have.
    """
    values = {path: field.default for path, field in recipe_fields(recipe).items()}
    return values | check_overrides(recipe, overrides)


@cache
def _listed_fields() -> dict[str, dict[str, Field]]:
    if not FIELDS.is_file():
        return {}
    return TypeAdapter(dict[str, dict[str, Field]]).validate_json(FIELDS.read_bytes())
