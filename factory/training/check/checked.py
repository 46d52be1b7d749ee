"""`check`: everything that can be said of a recipe on so many GPUs without having one."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from factory.discovery import check_overrides, recipe_names
from factory.errors import SpecError
from factory.training.assign import assign
from factory.training.check import cost, memory, validated
from factory.training.check.gpus import Gpu, gpu
from factory.training.check.layout import Layout, broken, layout
from factory.training.check.parameters import Parameters, confirmed, name_says, parameters
from factory.training.quiet import quiet

MAX_GPUS = 100_000


@dataclass(frozen=True, kw_only=True)
class Named:
    """A count beside the one in the model's name."""

    what: str
    counted: int
    said: int

    @property
    def confirmed(self) -> bool:
        """Whether they agree, so that the dimensions behind the count can be trusted."""
        return confirmed(self.counted, self.said)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A recipe on so many GPUs."""

    recipe: str
    model: str
    """The published name; empty where the model is our own."""

    gpu: Gpu
    layout: Layout
    broken: list[str]
    """Rules that the layout breaks; Bridge's own words come last."""

    parameters: Parameters
    named: tuple[Named, ...]
    unlooked: tuple[str, ...]
    """Fields that Bridge could not look at on this machine."""

    memory: memory.Memory | None
    """None where the layout is impossible."""

    flops_per_token: float

    @property
    def fits(self) -> bool | None:
        """Whether the estimate is below the GPU's memory; None where there is no estimate."""
        return None if self.memory is None else self.memory.total <= self.gpu.memory_bytes

    def gpu_hours(self, tokens: float, share: float) -> float:
        """GPU-hours for so many tokens, at a share of the GPU's peak."""
        return cost.gpu_hours(tokens, self.flops_per_token, self.gpu, share)


def check(recipe: str, gpus: int, gpu_type: str, overrides: Mapping[str, str]) -> Checked:
    """Build the recipe's full configuration and say what it is on so many GPUs.

    Raises:
        SpecError: no such recipe, GPU type or field, or a value that it cannot have.
    """
    if recipe not in recipe_names():
        raise SpecError(f"No recipe {recipe!r}. Known: {', '.join(recipe_names())}.")
    if not 1 <= gpus <= MAX_GPUS:
        raise SpecError(f"{gpus} GPUs: give a number from 1 to {MAX_GPUS:,}.")
    with quiet():
        return _checked(recipe, gpus, gpu(gpu_type), overrides)


def _checked(recipe: str, gpus: int, kind: Gpu, overrides: Mapping[str, str]) -> Checked:
    config = _built(recipe, overrides)
    config.model.vocab_size = memory.model_vocabulary(config)
    found = layout(config, gpus)
    counted = parameters(config.model)
    rules = broken(found)
    estimate = memory.memory(config, counted, found) if not rules else None
    per_token = cost.flops_per_token(config.model, counted, found)
    refused, unlooked = validated.refusal(config, gpus)
    if refused is not None and not rules:
        rules, estimate = [f"Megatron-Bridge refuses it: {refused}"], None
    name = _name(recipe)
    return Checked(
        recipe=recipe,
        model=name,
        gpu=kind,
        layout=found,
        broken=rules,
        parameters=counted,
        named=_named(name, counted),
        unlooked=unlooked,
        memory=estimate,
        flops_per_token=per_token,
    )


def _built(recipe: str, overrides: Mapping[str, str]) -> Any:
    from factory.training.cpu import placeholder

    values = check_overrides(recipe, overrides)
    module, _, function = recipe.partition(".")
    with placeholder.where_missing():
        config = getattr(importlib.import_module(f"factory.training.recipes.{module}"), function)()
        for path, value in values.items():
            assign(config, path, value)
    return config


def _name(recipe: str) -> str:
    module = importlib.import_module(f"factory.training.recipes.{recipe.partition('.')[0]}")
    return str(getattr(module, "NAME", ""))


def _named(name: str, counted: Parameters) -> tuple[Named, ...]:
    said = name_says(name)
    counts = {"total": counted.language, "active": counted.active}
    return tuple(Named(what=key, counted=counts[key], said=value) for key, value in said.items())
