"""A placeholder for Transformer Engine that one module of Bridge sees while it is imported.

`megatron.bridge.peft.lora_layers` imports Transformer Engine without a guard, and everything in
Bridge imports that module. A placeholder in `sys.modules` would make some twenty other modules
believe that Transformer Engine is there; this one is handed out by an `__import__` that only
`lora_layers` has. It makes the import work, not LoRA.
"""

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

MODULE = "megatron.bridge.peft.lora_layers"


class _Missing(type):
    """A class whose every attribute is another such class: enough for annotations."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _missing(name)


def _missing(name: str) -> type:
    return _Missing(name, (), {})


def _import(
    name: str,
    module_globals: Mapping[str, object] | None = None,
    module_locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> types.ModuleType:
    if level == 0 and name.split(".", maxsplit=1)[0] == "transformer_engine":
        module = types.ModuleType(name)
        module.__getattr__ = _missing
        return module
    return builtins.__import__(name, module_globals, module_locals, fromlist, level)


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader) -> None:
        self.inner = inner

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        self.inner.exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


@contextmanager
def where_missing() -> Generator[None]:
    """Within: as `installed`, on a machine that does not have Transformer Engine itself."""
    if importlib.util.find_spec("transformer_engine") is not None:
        yield
        return
    with installed():
        yield


@contextmanager
def installed() -> Generator[None]:
    """Within: `import megatron.bridge` works without Transformer Engine."""
    finder: Any = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module(MODULE)
        yield
    finally:
        sys.meta_path.remove(finder)
