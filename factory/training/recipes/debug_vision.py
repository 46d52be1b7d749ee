"""Debug with images: a tiny Qwen3-VL, and one with experts, that read a real model's data.

For a dataset with images what `debug` is for text: its samples go through the tokenizer, the chat
template and the image processor of the model that it is meant for (`dataset.tokenizer` names that
model's directory) and through the whole of Megatron-Bridge, in seconds on a laptop. The weights are
random, so a loss says that the path works and nothing else.
"""

from typing import TYPE_CHECKING, Any, Literal, cast

from factory.training.recipes._continued import MODELS
from factory.training.recipes._short import short

if TYPE_CHECKING:
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import ConfigContainer

TOKENIZER = f"{MODELS}/Qwen/Qwen3-VL-30B-A3B-Instruct"
"""Where the recipe of that model reads; any other Qwen3-VL will do."""

TEXT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,  # what an image adds behind the last one, no text would see
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [4, 2, 2],
        "mrope_interleaved": True,
    },
    "attention_bias": False,
}
EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}
VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "patch_size": 16,  # of Qwen3-VL's image processor, as the next two
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 64,
    "deepstack_visual_indexes": [0, 1],
}


def pretrain() -> "ConfigContainer":
    """Qwen3-VL, about a quarter of a million parameters beside its vocabulary."""
    return _recipe("qwen3_vl", TEXT)


def pretrain_moe() -> "ConfigContainer":
    """Qwen3-VL-MoE: four experts, of which two work on a token."""
    return _recipe("qwen3_vl_moe", TEXT | EXPERTS)


def _recipe(kind: Literal["qwen3_vl", "qwen3_vl_moe"], text: dict[str, Any]) -> "ConfigContainer":
    from factory.training.loader import MixProvider

    config = short()
    model = config.model = _model(kind, text)
    config.dataset = MixProvider(tokenizer=TOKENIZER, buffer=64, seq_length=model.seq_length)
    config.train.global_batch_size = 8
    config.train.micro_batch_size = 2
    config.ddp.average_in_collective = False  # Bridge: not together with the loss per token
    return config


def _model(kind: str, text: dict[str, Any]) -> "GPTModelProvider":
    from megatron.bridge import AutoBridge
    from transformers import AutoConfig

    name = "Qwen3VLMoe" if kind.endswith("moe") else "Qwen3VL"
    described = AutoConfig.for_model(
        kind,
        text_config=text,
        vision_config=VISION,
        tie_word_embeddings=False,
        architectures=[f"{name}ForConditionalGeneration"],
    )
    model: Any = AutoBridge.from_hf_config(described).to_megatron_provider(load_weights=False)
    model.vocab_size = None  # the tokenizer's
    model.should_pad_vocab = False
    model.seq_length = 1024
    model.calculate_per_token_loss = True  # a token's loss does not depend on its batch
    for part in ("language_model", "vision_model", "vision_projection"):
        setattr(model, f"freeze_{part}", False)
    return cast("GPTModelProvider", model)
