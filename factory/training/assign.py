"""Assign: set one field of a recipe's configuration by its path.

Which fields a run may set, and with what, is in `factory.overrides`.
"""

from typing import Any

from factory.errors import SpecError


def assign(config: Any, path: str, value: Any) -> None:
    """Set an existing field; a data type is given by its name in torch.

    Raises:
        SpecError: there is no such field.
    """
    import torch

    *parents, name = path.split(".")
    owner = config
    for parent in parents:
        owner = getattr(owner, parent, None)
    if not hasattr(owner, name):
        raise SpecError(f"The configuration has no field {path!r}, so nothing can be set there.")
    if isinstance(getattr(owner, name), torch.dtype) and isinstance(value, str):
        value = getattr(torch, value)
    setattr(owner, name, value)
