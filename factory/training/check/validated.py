"""Validated: what Megatron-Bridge itself says of a configuration on so many GPUs."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

NEEDS_TRANSFORMER_ENGINE = ("apply_rope_fusion", "moe_permute_fusion")
"""Fields that Bridge refuses where Transformer Engine is missing; set off for its validation."""


def refusal(config: Any, gpus: int) -> tuple[str | None, tuple[str, ...]]:
    """Why Bridge refuses the configuration, and which fields could not be looked at here.

    The configuration is changed by being validated, so give a copy.
    """
    from megatron.bridge.training.config import runtime_config_update

    skipped: list[str] = []
    if find_spec("transformer_engine") is None:
        skipped = [name for name in NEEDS_TRANSFORMER_ENGINE if getattr(config.model, name, False)]
        for name in skipped:
            setattr(config.model, name, False)
    config.checkpoint.pretrained_checkpoint = None  # weights need not lie here
    config.env_vars = {}  # they would stay in this process
    try:
        with _world(gpus):
            runtime_config_update(config)
    except (AssertionError, ValueError, ZeroDivisionError, TypeError) as error:
        return " ".join(str(error).split()) or type(error).__name__, tuple(skipped)
    return None, tuple(skipped)


@contextmanager
def _world(gpus: int) -> Generator[None]:
    """Within: Bridge believes that it is the first of so many ranks."""
    with patch.dict(os.environ, {"WORLD_SIZE": str(gpus), "RANK": "0", "LOCAL_RANK": "0"}):  # noqa: TID251, how Bridge is told
        yield
