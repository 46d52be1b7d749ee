"""Vision tokens: a model that sees images reads them where its tokenizer puts them, or is refused.

A model finds the places of images by the id of a token. With the directory of another model it
would find none, and learn from texts with holes; a model of texts would read the holes as words.
"""

from typing import TYPE_CHECKING, Any

from factory.errors import SpecError

if TYPE_CHECKING:
    from factory.data.encoding import Tokenizer
    from factory.data.encoding.images import ImageProcessor

IDS = ("vision_start_token_id", "image_token_id", "vision_end_token_id")
"""Fields of a model, in the order of the tokens that stand for an image."""

CUT = ("patch_size", "temporal_patch_size", "spatial_merge_size")
"""How a model cuts images, by the names of its vision tower; processors say `merge_size`."""


def agree(model: Any, tokenizer: "Tokenizer", processor: "ImageProcessor | None") -> None:
    """Give the tokenizer's size and ids to a model without a vocabulary; else compare them.

    Args:
        model: a model provider of Bridge.
        tokenizer: of the run.
        processor: the image processor beside it, where there is one that can be used.

    Raises:
        SpecError: only one of model and tokenizer knows images, or they know them differently.
    """
    tower = getattr(model, "vision_config", None)
    if tower is None and processor is None:
        return
    if tower is None:
        raise SpecError(
            f"The tokenizer {tokenizer.name} is that of a model that sees images, and this one "
            "does not: it would read the places of images as words. Set dataset.tokenizer to the "
            "directory of a model of texts, or take a recipe whose model sees images."
        )
    if processor is None or tokenizer.image is None:
        raise SpecError(
            f"This model sees images, and {tokenizer.name} has no image processor or no tokens "
            "for images. Set dataset.tokenizer to the model's own directory, with its "
            "preprocessor_config.json."
        )
    ours = dict(zip(IDS, tokenizer.image.ids, strict=True))
    if model.vocab_size is None:  # left to Bridge it would be padded, and fit no published weights
        for name, value in {"vocab_size": tokenizer.size, **ours}.items():
            setattr(model, name, value)
    theirs = {name: getattr(model, name) for name in IDS}
    made = {name: getattr(processor.processor, name, processor.merge) for name in CUT}
    cut = {name: getattr(tower, name) for name in CUT}
    for name, now, then in (
        *((f"model.{name}", theirs[name], ours[name]) for name in IDS),
        *((f"{name} of the model", cut[name], made[name]) for name in CUT),
    ):
        if now != then:
            raise SpecError(
                f"{name} is {now}, but {tokenizer.name} has {then} for it: the model would not "
                "find its images, or see others. Set dataset.tokenizer to the model's own "
                "directory."
            )
