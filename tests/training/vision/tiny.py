"""Qwen3-VL and Qwen3.5 small enough to be made in a test.

Weights, tokenizer, processor and chat template: the directory is what `AutoBridge` and
`factory.data.encoding` read of a published model. About a quarter of a million parameters, made
in less than a second, and nothing comes from a hub.
"""

import json
from pathlib import Path
from typing import Any, Literal, get_args

from tests.data.encoding import qwen_like

type Kind = Literal["qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"]
"""As transformers names the type of a model."""

KINDS: tuple[Kind, ...] = get_args(Kind.__value__)

PATCH = 16
MERGE = 2
SMALLEST, LARGEST = 4 * (PATCH * MERGE) ** 2, 16 * (PATCH * MERGE) ** 2
"""Pixels of an image as the model sees it: 4 to 16 tokens."""

TEXT: dict[str, Any] = {
    "vocab_size": qwen_like.SIZE,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
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
VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "patch_size": PATCH,
    "temporal_patch_size": 2,
    "spatial_merge_size": MERGE,
    "out_hidden_size": 64,
    "num_position_embeddings": 64,
    "deepstack_visual_indexes": [0, 1],
}
LINEAR: dict[str, Any] = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "rope_parameters": {
        **TEXT["rope_parameters"],
        "mrope_section": [2, 1, 1],
        "partial_rotary_factor": 0.5,
    },
}
"""What Qwen3.5 has instead: every other layer is a gated delta rule."""

EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}


def write(folder: Path, kind: Kind, seed: int = 3) -> Path:
    """Write the model into a folder; gives the folder."""
    import torch

    qwen_like.write(folder)
    write_processor(folder)
    torch.manual_seed(seed)
    model = _model(kind, _tokens(folder))
    for parameter in model.parameters():
        if parameter.dim() == 1:  # norms and biases start at 1 and 0: a swap of two would not show
            torch.nn.init.normal_(parameter, mean=parameter[0].item(), std=0.05)
    model.save_pretrained(folder)
    return folder


def write_processor(folder: Path) -> None:
    """The image processor and what goes with it; a tokenizer is there already."""
    from transformers import AutoTokenizer, Qwen2VLImageProcessor
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    images = Qwen2VLImageProcessor(
        patch_size=PATCH,
        merge_size=MERGE,
        temporal_patch_size=2,
        size={"shortest_edge": SMALLEST, "longest_edge": LARGEST},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    videos = Qwen3VLVideoProcessor(patch_size=PATCH, merge_size=MERGE)
    template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    Qwen3VLProcessor(images, tokenizer, videos, chat_template=template).save_pretrained(folder)
    images.save_pretrained(folder)


def _tokens(folder: Path) -> dict[str, int]:
    found = json.loads((folder / "tokenizer.json").read_bytes())["added_tokens"]
    ids = {one["content"]: one["id"] for one in found}
    return {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }


def _model(kind: Kind, tokens: dict[str, int]) -> Any:
    import transformers

    new = kind.startswith("qwen3_5")
    text = TEXT | (LINEAR if new else {}) | (EXPERTS if kind.endswith("_moe") else {})
    vision = {name: value for name, value in VISION.items() if not (new and "deepstack" in name)}
    config = transformers.AutoConfig.for_model(
        kind, text_config=text, vision_config=vision, tie_word_embeddings=False, **tokens
    )
    return transformers.AutoModelForImageTextToText.from_config(config).float()


def for_cpu(provider: Any) -> None:
    """Set what the cpu profile sets, on a provider that no recipe has."""
    from types import SimpleNamespace

    from factory.training.assign import assign
    from factory.training.profiles import SETTINGS

    for path, value in SETTINGS["cpu"].items():
        if path.startswith("model."):
            assign(SimpleNamespace(model=provider), path, value)
    for part in ("language_model", "vision_model", "vision_projection"):
        setattr(provider, f"freeze_{part}", False)
    provider.mtp_num_layers = None  # transformers has no layers that predict further ahead
