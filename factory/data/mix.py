"""Mix: which datasets a run is trained on, with weights, and why each one is there.

A weight is a share of the *samples* drawn; weights of all three lists are compared with each other.
`blend` renders a mix for Energon. How a sample becomes tokens is in `encoder`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.data.dataset import Dataset
from factory.errors import DeclarationError, SpecError
from factory.spec import RunSpec

type Weighted = Sequence[tuple[float, Dataset]]

ENERGON_PART = "train"
"""The part that is asked of Energon. A directory of ours holds one split, under every part."""


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Datasets and weights by purpose."""

    warmup: Weighted = ()
    """What eases the model into the new data."""

    domain_shift: Weighted = ()
    """What the model is meant to learn."""

    retention: Weighted = ()
    """What keeps the model from forgetting."""

    def __post_init__(self) -> None:
        if not self.weighted:
            raise DeclarationError("A mix without datasets trains nothing. Name at least one.")
        seen: set[str] = set()
        for weight, dataset in self.weighted:
            if not (math.isfinite(weight) and weight > 0):
                raise DeclarationError(
                    f"{dataset.key} has the weight {weight}; a weight is a finite number above 0. "
                    "Leave a dataset out instead of weighting it 0."
                )
            if dataset.role == "benchmark":
                raise DeclarationError(
                    f"{dataset.key} is a benchmark: what is trained on it says nothing when it is "
                    "measured with it. Take it out of the mix."
                )
            if dataset.key.path in seen:
                raise DeclarationError(
                    f"{dataset.key} is in the mix twice. Give it one purpose and one weight."
                )
            seen.add(dataset.key.path)

    @property
    def weighted(self) -> tuple[tuple[float, Dataset], ...]:
        """Every dataset with its weight, in the order of the declaration."""
        return (*self.warmup, *self.domain_shift, *self.retention)

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset, in the order of the declaration."""
        return tuple(dataset for _, dataset in self.weighted)


def blend(mix: Mix, split: str, paths: Mapping[str, Path]) -> dict[str, Any]:
    """The mix as an Energon `MetadatasetV2`; each sample carries its dataset's key as `source`.

    Args:
        mix: what to blend.
        split: which split of each dataset, `train`.
        paths: directory of every `<key>/energon/<split>`, by that key path.

    Raises:
        SpecError: a dataset of the mix has no directory there.
    """
    return {
        "__module__": "megatron.energon",
        "__class__": "MetadatasetV2",
        "splits": {ENERGON_PART: {"blend": list(_sources(mix, split, paths))}},
    }


def required_samples(spec: RunSpec, split: str = "train") -> int:
    """Samples that a source needs so that every reader of it has one.

    Energon cuts a source into as many ranges as there are readers and gives the empty ones weight
    0, without a word: a smaller source would be seen less than its weight says. A run reads only
    `train` so far; of another split one sample shows that it is there.
    """
    return spec.ranks * max(1, spec.loader_workers) if split == "train" else 1


def _sources(mix: Mix, split: str, paths: Mapping[str, Path]) -> Iterator[dict[str, Any]]:
    for weight, dataset in mix.weighted:
        key = f"{dataset.key.path}/energon/{split}"
        if key not in paths:
            raise SpecError(
                f"The run pins no version of {key}, which its mix names. Launch it again: "
                "the gate pins the versions that are current."
            )
        yield {
            "weight": float(weight),
            "path": str(paths[key]),
            "split_part": ENERGON_PART,
            "subflavors": {"source": dataset.key.path},
        }
