"""What the recipes for open models share: they train all of a model that exists already."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

MODELS = "/models"
"""Where an image or a volume has published models, as `<organization>/<name>`."""

SAVE_INTERVAL = 200
LOG_INTERVAL = 10


def continued(config: "ConfigContainer", *, name: str, steps: int, warmup: int) -> None:
    """Settings that a run of ours needs and that Bridge's recipes for trying out leave open.

    Tokenizer, image processor and weights come from the model's directory as it was published.

    Args:
        config: what Bridge's recipe made; changed in place.
        name: the model's published name.
        steps: optimizer steps; the learning rate falls over all of them.
        warmup: steps in which it rises.
    """
    from factory.training.loader import MixProvider

    model = cast("Any", config.model)
    config.dataset = MixProvider(tokenizer=f"{MODELS}/{name}", seq_length=model.seq_length)
    config.checkpoint.pretrained_checkpoint = f"{MODELS}/{name}"
    model.hf_model_id = name
    model.freeze_language_model = False
    model.freeze_vision_model = False
    model.freeze_vision_projection = False
    # Kept whole, what the layers of one step need would be the largest part of a GPU's memory.
    model.recompute_granularity = "full"
    model.recompute_method = "uniform"
    model.recompute_num_layers = 1
    model.calculate_per_token_loss = True  # a token's loss does not depend on its batch
    config.ddp.average_in_collective = False  # Bridge: not together with the loss per token
    config.train.train_iters = steps
    config.scheduler.lr_warmup_iters = warmup
    config.scheduler.lr_decay_iters = steps
    config.scheduler.start_weight_decay = config.optimizer.weight_decay
    config.scheduler.end_weight_decay = config.optimizer.weight_decay
    config.validation.eval_iters = 0
    config.checkpoint.save_interval = SAVE_INTERVAL
    config.logger.log_interval = LOG_INTERVAL


def learning_rate(config: "ConfigContainer", highest: float) -> None:
    """The peak of the learning rate; it falls to a tenth of it."""
    config.optimizer.lr = highest
    config.optimizer.min_lr = highest / 10
