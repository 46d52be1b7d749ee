"""Overrides: set one field of a recipe's configuration by its path, parsed by the field's type."""

from typing import Any

from factory.errors import SpecError


def assign(config: Any, path: str, value: Any) -> None:
    """Set an existing field.

    Raises:
        SpecError: there is no such field.
    """
    import torch

    *parents, name = path.split(".")
    owner = config
    for parent in parents:
        owner = getattr(owner, parent)
    if not hasattr(owner, name):
        raise SpecError(f"{type(owner).__name__} has no field {name!r}, so {path!r} sets nothing.")
    if isinstance(getattr(owner, name), torch.dtype) and isinstance(value, str):
        value = getattr(torch, value)
    setattr(owner, name, value)
