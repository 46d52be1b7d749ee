"""Qwen3-VL and Qwen3.5 small enough to be made in a test.

Weights, tokenizer, processor and chat template: the directory is what `AutoBridge` and
`factory.data.encoding` read of a published model. The sizes are those of the recipe `debug_vision`.
It is made in less than a second, and nothing comes from a hub.
"""

import json
from pathlib import Path
from typing import Any, Literal, get_args

from factory.training.recipes import debug_vision
from tests.data.encoding import qwen_like

type Kind = Literal["qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"]
"""As transformers names the type of a model."""

KINDS: tuple[Kind, ...] = get_args(Kind.__value__)

PATCH, MERGE = debug_vision.VISION["patch_size"], debug_vision.VISION["spatial_merge_size"]
SMALLEST, LARGEST = 4 * (PATCH * MERGE) ** 2, 16 * (PATCH * MERGE) ** 2
"""Pixels of an image as the model sees it: 4 to 16 tokens."""

TEXT = debug_vision.TEXT | {"vocab_size": qwen_like.SIZE}
LINEAR: dict[str, Any] = {
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
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
"""What Qwen3.5 has instead: most layers are a gated delta rule."""

EXPERTS = debug_vision.EXPERTS | {"shared_expert_intermediate_size": 32}


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
    vision = debug_vision.VISION.copy()
    if new:
        del vision["deepstack_visual_indexes"]
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
