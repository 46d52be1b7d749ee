"""Check: a recipe on so many GPUs, before anybody waits for them.

`layout` says how the GPUs divide and which rule an impossible layout breaks; `parameters` counts
them by part, `memory` estimates a GPU's, `cost` a token budget's. `validated` asks Megatron-Bridge
itself, and `checked` puts it all together. Nothing here needs a GPU, a hub or weights.
"""

from factory.training.check.checked import Checked, check
from factory.training.check.cost import MFU
from factory.training.check.gpus import GPUS, Gpu

__all__ = ["GPUS", "MFU", "Checked", "Gpu", "check"]
