"""What the recipes for trying out share: eighty steps of a new model, made for a laptop."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

STEPS = 80


def short() -> "ConfigContainer":
    """Bridge's GPT with the settings of a short run; model, data and batch are the recipe's."""
    from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config

    config = vanilla_gpt_pretrain_config()
    config.train.train_iters = STEPS
    config.validation.eval_iters = 0
    config.optimizer.lr = 3e-3
    config.optimizer.min_lr = 3e-4
    config.optimizer.clip_grad = 1.0
    config.ddp.use_distributed_optimizer = True  # as the optimizer; Bridge warns of the difference
    config.scheduler.lr_warmup_iters = 10
    config.scheduler.start_weight_decay = config.optimizer.weight_decay
    config.scheduler.end_weight_decay = config.optimizer.weight_decay
    config.checkpoint.save_interval = STEPS
    config.logger.log_interval = 5
    return config
