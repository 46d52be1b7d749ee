"""Samples as the shards of an Energon dataset, as the step `energon` writes them."""

from collections.abc import Sequence
from pathlib import Path

from factory.data import Loss, Sample, energon
from factory.data.energon import Entry, Stored
from factory.data.sample import canonical


def in_order(samples: Sequence[Sample]) -> list[Sample]:
    """Samples in the order of their places."""
    return sorted(samples, key=lambda one: energon.place(one.id))


def write_shards(folder: Path, samples: Sequence[Sample], per_shard: int = 1_000) -> list[str]:
    """Write the tars of samples in the order given; gives the hash of what each says."""
    contents: list[str] = []
    for start in range(0, len(samples), per_shard):
        part = samples[start : start + per_shard]
        entries = [
            Entry(
                one.id,
                canonical(one.as_dict()),
                [
                    Stored(image.sha256, image.extension, image.data)
                    for image in one.images.values()
                ],
            )
            for one in part
        ]
        contents.append(energon.write_shard(folder / energon.shard_name(len(contents)), entries))
    return contents


def content_id(contents: Sequence[str], per_shard: int = 1_000) -> str:
    """The content id of shards with the usual policy."""
    return energon.content_id(contents, per_shard, Loss())
