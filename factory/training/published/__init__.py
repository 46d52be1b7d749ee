"""Published: the dimensions of open models, so that their recipes are built without hub or weights.

Each directory is named as the recipe's module and holds the `config.json` that Bridge reads: the
fields that decide shapes, written down from what is published; `factory.training.check` says which
of them the model's name confirms.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from factory.errors import SpecError

ROOT = Path(__file__).resolve().parent

FLEX = "apply_flex_dispatcher_backend"
"""Called by Bridge's recipes with no backend, which changes nothing, but asks the GPU its name."""


def directory(model: str) -> Path:
    """Where the configuration of a model lies.

    Raises:
        SpecError: its dimensions are not written down here.
    """
    found = ROOT / model
    if not (found / "config.json").is_file():
        known = ", ".join(sorted(path.parent.name for path in ROOT.glob("*/config.json")))
        raise SpecError(f"The dimensions of {model!r} are not known. Known: {known}.")
    return found


@contextmanager
def offline(recipes: ModuleType, model: str) -> Generator[None]:
    """Within: the recipes of that module of Bridge build this model from the dimensions here."""
    from megatron.bridge import AutoBridge

    class Here:
        @staticmethod
        def from_hf_pretrained(_: str) -> Any:
            return AutoBridge.from_hf_pretrained(str(directory(model)))

    with ExitStack() as stack:
        stack.enter_context(patch.object(recipes, "AutoBridge", Here))
        if hasattr(recipes, FLEX):
            stack.enter_context(patch.object(recipes, FLEX, _nothing))
        yield


def _nothing(*_: object, moe_flex_dispatcher_backend: str | None = None) -> None:
    if moe_flex_dispatcher_backend is not None:
        raise RuntimeError(
            f"Bridge's recipe asks for the dispatcher {moe_flex_dispatcher_backend}, which is "
            "chosen by asking the GPU; build it on the cluster."
        )
