"""Debug: two layers over bytes. What the smoke run trains: seconds on a laptop, or on one GPU."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer


def pretrain() -> "ConfigContainer":
    """A byte-level language model of about half a million parameters."""
    from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config

    from factory.data.encoder import VOCABULARY_SIZE

    config = vanilla_gpt_pretrain_config()
    config.model.num_layers = 2
    config.model.hidden_size = 128
    config.model.ffn_hidden_size = 512
    config.model.num_attention_heads = 4
    config.model.seq_length = 256
    config.model.position_embedding_type = "rope"
    config.model.normalization = "RMSNorm"
    config.model.add_bias_linear = False
    config.model.attention_dropout = 0.0
    config.model.hidden_dropout = 0.0
    config.model.calculate_per_token_loss = True  # the loss of a token does not depend on its batch
    config.model.should_pad_vocab = True
    config.tokenizer.vocab_size = VOCABULARY_SIZE
    config.tokenizer.use_tokenizer_vocab_size = True
    config.dataset.seq_length = config.model.seq_length
    config.train.train_iters = 100
    config.train.global_batch_size = 16
    config.train.micro_batch_size = 4
    config.validation.eval_iters = 0
    config.optimizer.lr = 3e-3
    config.optimizer.min_lr = 3e-4
    config.optimizer.clip_grad = 1.0
    config.scheduler.lr_warmup_iters = 10
    config.scheduler.start_weight_decay = config.optimizer.weight_decay
    config.scheduler.end_weight_decay = config.optimizer.weight_decay
    config.checkpoint.save_interval = config.train.train_iters
    config.logger.log_interval = 5
    return config
