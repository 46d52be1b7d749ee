"""Qwen3.5 122B-A10B, continued: on Megatron-Bridge's own recipes, all parameters trained.

Text and images; 256 experts of which 8 work on a token, and three layers of four with linear
attention. `factory recipe check` says which numbers of GPUs it divides over, and what fits.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

NAME = "Qwen/Qwen3.5-122B-A10B"

GLOBAL_BATCH, MICRO_BATCH = 48, 1
"""Bridge ships 36 and 4 for 48 GPUs, which its own layout does not divide: 4 samples on each of 4
data-parallel ranks are 16, and the nearest that do are 32 and 48. A pipeline of ours passes on rows
of one sequence, which hold as many documents as fit."""


def pretrain() -> "ConfigContainer":
    """Continued pretraining on documents and captions, laid out as fine-tuning is.

    Bridge's own recipe for pretraining needs 128 GPUs; set `model.*_parallel_size` for it.
    """
    config = _laid_out(steps=10_000, warmup=200)
    from factory.training.recipes import _continued

    _continued.learning_rate(config, 2e-5)
    return config


def sft() -> "ConfigContainer":
    """Supervised fine-tuning on conversations. Laid out as Bridge's: TP 2, PP 6, EP 8."""
    from factory.training.recipes import _continued

    config = _laid_out(steps=2_000, warmup=50)
    _continued.learning_rate(config, 5e-6)
    return config


def _laid_out(steps: int, warmup: int) -> "ConfigContainer":
    from megatron.bridge.recipes.qwen_vl.h100 import qwen35_vl

    from factory.training import published
    from factory.training.recipes import _continued

    with published.offline(qwen35_vl, "qwen35_vl_122b_a10b"):
        config = qwen35_vl.qwen35_vl_122b_a10b_sft_48gpu_h100_bf16_config()
    _continued.continued(config, name=NAME, steps=steps, warmup=warmup)
    config.train.global_batch_size = GLOBAL_BATCH
    config.train.micro_batch_size = MICRO_BATCH
    return config
