"""Stand-ins that let Megatron-Bridge train on a machine without a GPU: the `cpu` profile.

`placeholder` lets Bridge import without Transformer Engine, `device` sends what Bridge hard-codes
to the GPU to the CPU, `layers` replaces Transformer Engine's layers under their own parameter
names, so that a checkpoint has the same tensors on both profiles. Everything is scoped: `stand_ins`
puts it in and takes it out again. The `h100` profile never imports this package.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from factory.errors import SpecError


def refuse_cuda() -> None:
    """Raise where there is a GPU: a run must not silently train on the wrong device.

    Raises:
        SpecError: a CUDA device is visible to this process.
    """
    import torch

    if torch.cuda.is_available():
        raise SpecError(
            f"The cpu profile was chosen but this machine has {torch.cuda.get_device_name(0)}. "
            "Run on a cluster whose profile is h100, or hide the GPU with CUDA_VISIBLE_DEVICES=''."
        )


@contextmanager
def stand_ins() -> Generator[None]:
    """Everything that Bridge needs in order to build and train a model on the CPU."""
    refuse_cuda()
    from factory.training.cpu import device, layers, placeholder

    with ExitStack() as stack:
        stack.enter_context(placeholder.installed())
        stack.enter_context(device.redirected())
        stack.enter_context(layers.replaced())
        yield
