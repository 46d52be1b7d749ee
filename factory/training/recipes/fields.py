"""Fields: lists what a run may override in each recipe, for checks without the trainer.

`python -m factory.training.recipes.fields` writes `fields.json`; `factory.discovery` reads it.
Left out is what the factory itself decides: datasets, directories, loggers, seeds, process groups.
"""

import dataclasses
import importlib
import json
import types
import typing
from collections.abc import Iterator
from typing import Any, cast

from factory.discovery import FIELDS, recipe_names
from factory.overrides import Field

GROUPS = ("model", "dataset", "train", "optimizer", "scheduler", "ddp", "checkpoint", "logger")

ONLY: dict[str, frozenset[str]] = {
    "dataset": frozenset({"tokenizer", "chat", "regime", "buffer", "shuffle"}),
    "checkpoint": frozenset(
        {"save_interval", "most_recent_k", "fully_parallel_save", "pretrained_checkpoint"}
    ),
    "logger": frozenset({"log_interval", "log_throughput", "log_params_norm"}),
}
"""Of these groups the factory decides everything else."""

RANGES: dict[str, tuple[float | None, float | None]] = {
    "train.train_iters": (1, 100_000_000),
    "train.global_batch_size": (1, 1_000_000),
    "train.micro_batch_size": (1, 100_000),
    "model.num_layers": (1, 1_000),
    "model.hidden_size": (8, 1_000_000),
    "model.ffn_hidden_size": (8, 4_000_000),
    "model.num_attention_heads": (1, 1_000),
    "model.seq_length": (8, 10_000_000),
    "model.tensor_model_parallel_size": (1, 1_024),
    "model.pipeline_model_parallel_size": (1, 1_024),
    "model.context_parallel_size": (1, 1_024),
    "model.expert_model_parallel_size": (1, 4_096),
    "model.attention_dropout": (0, 1),
    "model.hidden_dropout": (0, 1),
    "dataset.buffer": (1, 1_000_000),
    "dataset.shuffle": (1, 1_000_000),
    "optimizer.lr": (0, 10),
    "optimizer.min_lr": (0, 10),
    "optimizer.weight_decay": (0, 10),
    "optimizer.adam_beta1": (0, 1),
    "optimizer.adam_beta2": (0, 1),
    "optimizer.adam_eps": (0, 1),
    "optimizer.clip_grad": (0, 1_000_000),
    "scheduler.lr_warmup_iters": (0, 100_000_000),
    "scheduler.lr_decay_iters": (1, 100_000_000),
    "checkpoint.save_interval": (1, 100_000_000),
    "checkpoint.most_recent_k": (-1, 1_000_000),
    "logger.log_interval": (1, 1_000_000),
}
"""Bridge declares no ranges; outside of these a run cannot work."""

REQUIRED = frozenset(
    {"train.train_iters", "train.global_batch_size", "train.micro_batch_size", "optimizer.lr"}
)
"""Bridge declares these as optional, and a run of ours cannot do without."""

_SCALARS = {bool: "bool", int: "int", float: "float", str: "str"}


def fields_of(config: Any) -> dict[str, Field]:
    """The fields of a configuration that a run may set."""
    found: dict[str, Field] = {}
    for group in GROUPS:
        owner = getattr(config, group)
        hints = typing.get_type_hints(cast("type[object]", type(owner)))
        for field in dataclasses.fields(owner):
            path = f"{group}.{field.name}"
            if field.name.startswith("_") or field.name not in ONLY.get(group, {field.name}):
                continue
            kind = _kind(hints.get(field.name), getattr(owner, field.name))
            if kind is not None:
                kind["optional"] &= path not in REQUIRED
                minimum, maximum = RANGES.get(path, (None, None))
                found[path] = Field(**kind, minimum=minimum, maximum=maximum)
    return found


def _kind(hint: Any, default: Any) -> dict[str, Any] | None:
    """Type, default and choices, where the field is a plain value."""
    options = list(_options(hint))
    optional = type(None) in options
    options = [option for option in options if option is not type(None)]
    if default is not None and not isinstance(default, bool | int | float | str):
        return None
    if len(options) != 1:
        return None
    common = {"default": default, "optional": optional}
    if typing.get_origin(options[0]) is typing.Literal:
        choices = typing.get_args(options[0])
        if not all(isinstance(choice, str) for choice in choices):
            return None
        return {**common, "type": "choice", "choices": list(choices)}
    scalar = _SCALARS.get(options[0])
    return None if scalar is None else {**common, "type": scalar}


def _options(hint: Any) -> Iterator[Any]:
    if isinstance(hint, typing.TypeAliasType):
        hint = hint.__value__
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        yield from typing.get_args(hint)
    else:
        yield hint


def listed() -> str:
    """The text of `fields.json` as it should be."""
    from factory.training.cpu import placeholder

    every: dict[str, Any] = {}
    with placeholder.where_missing():
        for name in recipe_names():
            module, _, function = name.partition(".")
            recipe = importlib.import_module(f"factory.training.recipes.{module}")
            every[name] = {
                path: field.model_dump(exclude_defaults=True) | {"default": field.default}
                for path, field in fields_of(getattr(recipe, function)()).items()
            }
    return json.dumps(every, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FIELDS.write_text(listed(), encoding="utf-8")
