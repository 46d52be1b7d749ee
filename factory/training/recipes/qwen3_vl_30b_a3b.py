"""Qwen3-VL 30B-A3B, continued: on Megatron-Bridge's own recipes, all parameters trained.

Text and images; 128 experts of which 8 work on a token. `factory recipe check` says which numbers
of GPUs it divides over, and what fits.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

NAME = "Qwen/Qwen3-VL-30B-A3B-Instruct"


def pretrain() -> "ConfigContainer":
    """Continued pretraining on documents and captions. Laid out as Bridge's: TP 4, PP 2, EP 4."""
    from megatron.bridge.recipes.qwen_vl.h100 import qwen3_vl

    from factory.training import published
    from factory.training.recipes import _continued

    with published.offline(qwen3_vl, "qwen3_vl_30b_a3b"):
        config = qwen3_vl.qwen3_vl_30b_a3b_pretrain_8gpu_h100_bf16_mock_config()
    _continued.continued(config, name=NAME, steps=10_000, warmup=200)
    _continued.learning_rate(config, 2e-5)  # Bridge's 3e-4 is for an untrained projection alone
    config.train.global_batch_size = 48
    config.train.micro_batch_size = 1  # a pipeline passes on rows of one sequence
    return config


def sft() -> "ConfigContainer":
    """Supervised fine-tuning on conversations. Laid out as Bridge's: TP 1, PP 1, EP 8."""
    from megatron.bridge.recipes.qwen_vl.h100 import qwen3_vl

    from factory.training import published
    from factory.training.recipes import _continued

    with published.offline(qwen3_vl, "qwen3_vl_30b_a3b"):
        config = qwen3_vl.qwen3_vl_30b_a3b_sft_8gpu_h100_bf16_config()
    _continued.continued(config, name=NAME, steps=2_000, warmup=50)
    _continued.learning_rate(config, 5e-6)  # what Bridge's own description says
    return config
