"""Debug: two layers over bytes. What the smoke run trains: a minute on a laptop, less on a GPU."""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import ConfigContainer


TOKENIZER = "bytes"


def pretrain() -> "ConfigContainer":
    """A byte-level language model of about half a million parameters."""
    from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config

    from factory.data.encoding import load
    from factory.training.loader import MixProvider

    config = vanilla_gpt_pretrain_config()
    model = cast("GPTModelProvider", config.model)
    model.num_layers = 2
    model.hidden_size = 128
    model.ffn_hidden_size = 512
    model.num_attention_heads = 4
    model.seq_length = 256
    model.position_embedding_type = "rope"
    model.normalization = "RMSNorm"
    model.add_bias_linear = False
    model.attention_dropout = 0.0
    model.hidden_dropout = 0.0
    model.calculate_per_token_loss = True  # a token's loss does not depend on its batch
    model.should_pad_vocab = True
    config.dataset = MixProvider(
        tokenizer=TOKENIZER, chat="plain", buffer=256, seq_length=model.seq_length
    )
    config.tokenizer.vocab_size = load(TOKENIZER).size
    config.tokenizer.use_tokenizer_vocab_size = True
    config.train.train_iters = 80
    config.train.global_batch_size = 32
    config.train.micro_batch_size = 8
    config.validation.eval_iters = 0
    config.optimizer.lr = 3e-3
    config.optimizer.min_lr = 3e-4
    config.optimizer.clip_grad = 1.0
    config.ddp.use_distributed_optimizer = True  # as the optimizer; Bridge warns of the difference
    config.scheduler.lr_warmup_iters = 10
    config.scheduler.start_weight_decay = config.optimizer.weight_decay
    config.scheduler.end_weight_decay = config.optimizer.weight_decay
    config.checkpoint.save_interval = config.train.train_iters
    config.logger.log_interval = 5
    return config
