"""What Bridge and Megatron hard-code to the GPU, sent to the CPU.

About 45 places create tensors with `device="cuda"` or call `.cuda()`. A torch function mode changes
that argument; the few calls into `torch.cuda` that have no CPU meaning do nothing.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")


class _Stream:
    """A CUDA stream or event on a machine that runs everything in order."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., "_Stream"]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self


class _ToCpu(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.type and len(args) == 1 and not kwargs:
            return func(*args).replace("torch.", "torch.cuda.")
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = CPU
        if func is torch.Tensor.to:
            args = tuple(CPU if _is_cuda(arg) else arg for arg in args)
        return func(*args, **kwargs)


def _is_cuda(device: object) -> bool:
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, str) and device.startswith("cuda")


def _gives[T](value: T) -> Callable[..., T]:
    """A function of its own for every name: torch's compiler takes equal ones for a mistake."""
    return lambda *_, **__: value


def _cpu_random_state(*_: object, **__: object) -> torch.Tensor:
    return torch.get_rng_state()


def _in_order(*_: object, **__: object) -> AbstractContextManager[None]:
    return nullcontext()


_NOTHING = (
    "synchronize",
    "empty_cache",
    "set_device",
    "reset_peak_memory_stats",
    "set_rng_state",
)
_ZERO = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")

_TORCH_CUDA: dict[str, Any] = {
    **{name: _gives(None) for name in _NOTHING},
    **{name: _gives(0) for name in _ZERO},
    "current_device": lambda: CPU,
    "memory_stats": _gives(dict[str, int]()),
    "Stream": _Stream,
    "Event": type("_Event", (_Stream,), {}),
    "stream": _in_order,
    "current_stream": _gives(_Stream()),
    "default_stream": _gives(_Stream()),
    "get_rng_state": _cpu_random_state,
}


@contextmanager
def redirected() -> Generator[None]:
    """Within: tensors asked for on the GPU are made on the CPU, and Bridge starts without CUDA."""
    from megatron.bridge.training import initialize, setup
    from megatron.core.tensor_parallel import random as rng

    rng.initialize_rng_tracker(inference_rng_tracker=True, force_reset=True)
    with ExitStack() as stack:
        for name, value in _TORCH_CUDA.items():
            stack.enter_context(patch.object(torch.cuda, name, value))
        for name in ("range_push", "range_pop", "mark"):
            stack.enter_context(patch.object(torch.cuda.nvtx, name, _gives(None)))
        stack.enter_context(
            patch.object(
                setup,
                "initialize_megatron",
                partial(initialize.initialize_megatron, allow_no_cuda=True),
            )
        )
        # Core's wheel carries the compiled helpers but not the Makefile that Bridge calls.
        stack.enter_context(patch.object(initialize, "compile_helpers", _gives(None)))
        # What core compiles for a GPU would be compiled for minutes, where a compiler is found.
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(_ToCpu())
        yield
