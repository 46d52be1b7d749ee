"""Debug: two layers over bytes. What the smoke run trains: a minute on a laptop, less on a GPU."""

from typing import TYPE_CHECKING, cast

from factory.training.recipes._short import short

if TYPE_CHECKING:
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import ConfigContainer


TOKENIZER = "bytes"


def pretrain() -> "ConfigContainer":
    """A byte-level language model of about half a million parameters."""
    from factory.data.encoding import load
    from factory.training.loader import MixProvider

    config = short()
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
    config.train.global_batch_size = 32
    config.train.micro_batch_size = 8
    return config
