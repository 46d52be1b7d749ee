"""Images as a model reads them, made by the model's own image processor from its directory.

How many tokens an image takes follows from its width and height, which its header says; its pixels
are decoded where a batch is made, so that nothing that waits to be packed holds any. transformers
and torch are imported when a processor is loaded. Where patches lie for the model is in `mrope`.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from factory.data.sample import canonical
from factory.errors import BadRow, SpecError

FILE = "preprocessor_config.json"
JOINED = "processor_config.json"
"""Where newer models keep it, beside what is said of video."""

REFUSED = "image of a shape that the image processor refuses"


class Grid(NamedTuple):
    """Patches of an image before the model merges some of them into one token."""

    frames: int
    rows: int
    columns: int

    @property
    def patches(self) -> int:
        """All of them."""
        return self.frames * self.rows * self.columns


class Pixels(NamedTuple):
    """An image for the model."""

    values: NDArray[np.float32]
    """[patches, values of one patch], normalized."""

    grid: Grid


@dataclass(frozen=True, kw_only=True)
class ImageProcessor:
    """A model's image processor. Equal images give equal pixels in every process."""

    identity: str
    """Of its settings, see `identity`."""

    merge: int
    """Patches along each side of the square that becomes one token."""

    processor: Any
    """Of transformers."""

    def tokens(self, width: int, height: int) -> int:
        """How many tokens an image of so many pixels takes, for `expanded`.

        Raises:
            BadRow: the processor refuses the shape.
        """
        try:
            patches: int = self.processor.get_number_of_image_patches(height, width, {})
        except ValueError as error:  # one side is over 200 times as long as the other
            raise BadRow(REFUSED) from error
        return patches // self.merge**2

    def pixels(self, data: bytes) -> Pixels:
        """The pixels of an image file.

        Raises:
            ValueError: they are not as many as `tokens` says, so the two do not belong together.
        """
        from PIL import Image

        with Image.open(io.BytesIO(data)) as image:
            made = self.processor(images=[image], return_tensors="pt")
            expected = self.tokens(*image.size)
        grid = Grid(*made["image_grid_thw"][0].tolist())
        if grid.patches != expected * self.merge**2:
            raise ValueError(
                f"The image processor {type(self.processor).__name__} makes {grid.patches} patches "
                f"of an image for which it announces {expected * self.merge**2}, so the tokens of "
                "its place would not be filled. It cannot be used with this version of "
                "transformers."
            )
        return Pixels(made["pixel_values"].numpy(), grid)


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height of an image file, from its header."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.size


def identity(folder: str | Path) -> str:
    """A hash of the settings of the image processor in a directory; nothing heavy is imported.

    Raises:
        SpecError: there is none.
    """
    return hashlib.sha256(canonical(_settings(Path(folder)))).hexdigest()


def load(folder: str | Path) -> ImageProcessor:
    """The image processor in a model's directory. Nothing is fetched, and no code of it is run.

    Raises:
        SpecError: there is none, or one that merges no patches.
    """
    from transformers import AutoImageProcessor

    found = identity(folder)
    reader: Any = AutoImageProcessor
    try:
        made = reader.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise SpecError(f"The image processor in {folder} cannot be loaded: {error}") from error
    merge = getattr(made, "merge_size", None)
    if merge is None or not hasattr(made, "get_number_of_image_patches"):
        raise SpecError(
            f"The image processor in {folder} is a {type(made).__name__}. Only those that cut an "
            "image into patches and merge them, as Qwen's, can be trained with."
        )
    return ImageProcessor(identity=found, merge=merge, processor=made)


def _settings(folder: Path) -> Mapping[str, Any]:
    """The settings, from the file that comes first for transformers."""
    joined = _json(folder / JOINED).get("image_processor")
    settings: Mapping[str, Any] = joined if isinstance(joined, dict) else _json(folder / FILE)
    if not settings:
        raise SpecError(
            f"The model in {folder} has no image processor: there is neither {FILE} nor one in "
            f"{JOINED}. Copy the model's own files there: nothing is fetched when a run starts."
        )
    return settings


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        return cast("dict[str, Any]", json.loads(file.read_bytes()))
    except ValueError as error:
        raise SpecError(f"{file} is not JSON ({error}). Copy it again.") from error
