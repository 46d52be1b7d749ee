"""Conversations about images, encoded as a run encodes them, and laid out as packs for a model."""

from collections.abc import Sequence as Many
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factory.data import Sample
from factory.data.encoding import Encoded, Encoder, Sequence, expanded, fitted, load
from factory.data.encoding import images as processors
from factory.data.encoding.mrope import positions
from factory.data.images.image import Image
from factory.data.images.png import stored
from factory.data.kinds import Message

COLOURS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220)}


def picture(width: int, height: int, seed: int, colour: str = "red") -> Image:
    """Noise around a colour."""
    from PIL import Image as Pixels

    chance = np.random.default_rng(seed)
    noise = chance.integers(-30, 31, (height, width, 3)) + np.array(COLOURS[colour])
    return stored(Pixels.fromarray(noise.clip(0, 255).astype(np.uint8)), {})


def conversation(number: int, images: Many[Image], answer: str = "It is a cell.") -> Sample:
    """A question about some images, and its answer."""
    parts: list[Any] = [part for image in images for part in ("look at ", image)]
    return Sample.conversation(
        id=f"sample-{number}",
        messages=[
            Message.of("user", [*parts, f"What is this? {number}"]),
            Message.of("assistant", answer),
        ],
    )


@dataclass(frozen=True)
class Document:
    """A sequence, and what the model sees with it."""

    sequence: Sequence
    pixels: tuple[processors.Pixels, ...]
    merge: int

    @property
    def positions(self) -> NDArray[np.int64]:
        """In three coordinates."""
        spans = [place.pad for place in self.sequence.images]
        grids = [one.grid for one in self.pixels]
        return positions(
            len(self.sequence.tokens), zip(spans, grids, strict=True), merge=self.merge
        )


def document(folder: Path, sample: Sample) -> Document:
    """A sample as the model in the folder reads it."""
    processor = processors.load(folder)
    made = Encoder(load(folder)).encode(sample.as_dict(), sample.id)
    assert isinstance(made, Encoded)
    files = [sample.images[place.image].data for place in made.images]
    counts = [processor.tokens(*processors.size_of(file)) for file in files]
    (sequence,) = fitted(expanded(made, counts), "drop", 4096).sequences
    return Document(sequence, tuple(map(processor.pixels, files)), processor.merge)


def inputs(documents: Many[Document], *, torn: bool = True) -> dict[str, Any]:
    """What a model of Bridge is called with: the documents in a pack; not `torn`, as if one."""
    import torch
    from megatron.core.packed_seq_params import PackedSeqParams

    lengths = [len(one.sequence.tokens) for one in documents]
    ends = np.cumsum([0, *lengths] if torn else [0, sum(lengths)])
    bounds = torch.tensor(ends, dtype=torch.int32)
    longest = int(np.diff(ends).max())
    tokens = np.concatenate([one.sequence.tokens for one in documents])
    made = {
        "input_ids": torch.tensor(tokens, dtype=torch.long)[None],
        "position_ids": torch.tensor(np.concatenate([one.positions for one in documents], 1))[
            :, None
        ],
        "attention_mask": None,
        "packed_seq_params": PackedSeqParams(
            qkv_format="thd",
            cu_seqlens_q=bounds,
            cu_seqlens_kv=bounds,
            max_seqlen_q=longest,
            max_seqlen_kv=longest,
        ),
    }
    return made | shown(documents)


def shown(documents: Many[Document]) -> dict[str, Any]:
    """The images of the documents, one behind the other."""
    import torch

    seen = [pixels for one in documents for pixels in one.pixels]
    if not seen:
        return {}
    return {
        "pixel_values": torch.tensor(np.concatenate([one.values for one in seen])),
        "image_grid_thw": torch.tensor([list(one.grid) for one in seen]),
    }
