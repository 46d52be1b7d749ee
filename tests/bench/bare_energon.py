"""Energon's own loader with packing, on the datasets of a locked mix, to measure ours beside it.

The same tokens, cuts, shuffling and packing buffer. What is packed together is chosen by
Megatron-Bridge's first-fit-decreasing. Tokens are not counted and nothing is hashed.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from megatron.bridge.data.packing.algorithms import first_fit_decreasing
from megatron.energon import (
    Cooker,
    DefaultTaskEncoder,
    WorkerConfig,
    basic_sample_keys,
    get_savable_loader,
    get_train_dataset,
    stateless,
)
from megatron.energon import Sample as EnergonSample
from megatron.energon.edataclass import edataclass

from factory.data.encoding import fitted
from factory.data.mixing import MixLock
from factory.data.stream.build import encoder_of


@edataclass
class Raw(EnergonSample):
    content: dict[str, Any]


@edataclass
class Piece(EnergonSample):
    sequence: Any
    """One, or those of a pack."""


@stateless
def cook(raw: dict[str, Any]) -> Raw:
    keys: Any = basic_sample_keys(raw)
    return Raw(**keys, content=raw["json"])


class Bare(DefaultTaskEncoder[Any, Any, Any, Any]):
    cookers = (Cooker(cook),)

    def __init__(self, encoder: Any, context: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.context = context

    @stateless
    def preencode_sample(self, sample: Raw) -> Iterator[Piece]:
        made = self.encoder.encode(sample.content, sample.__key__)
        for one in fitted(made, "split", self.context).sequences:
            yield Piece.derive_from(sample, sequence=one)

    def select_samples_to_pack(self, samples: list[Piece]) -> list[list[Piece]]:
        by_length: dict[int, list[Piece]] = {}
        for one in samples:
            by_length.setdefault(len(one.sequence.tokens), []).append(one)
        packs = first_fit_decreasing([len(one.sequence.tokens) for one in samples], self.context)
        return [[by_length[length].pop() for length in pack] for pack in packs]

    @stateless
    def pack_selected_samples(self, samples: list[Piece]) -> Piece:
        return Piece.derive_from(samples[0], sequence=[one.sequence for one in samples])

    @stateless
    def batch(self, samples: list[Piece]) -> dict[str, Any]:
        found = [one for sample in samples for one in sample.sequence]
        lengths = [len(one.tokens) for one in found]
        ends = torch.tensor([0, *lengths]).cumsum(0)
        return {
            "tokens": self._row(found, "tokens"),
            "labels": self._row(found, "labels"),
            "loss_mask": self._row(found, "loss_mask").float(),
            "position_ids": torch.cat([torch.arange(length) for length in lengths]),
            "cu_seqlens": ends,
        }

    @stateless
    def encode_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch

    def _row(self, found: list[Any], name: str) -> torch.Tensor:
        whole = torch.cat([torch.from_numpy(getattr(one, name)) for one in found])
        row = torch.zeros(self.context, dtype=torch.int64)
        row[: len(whole)] = whole
        return row


def bare_loader(
    lock: MixLock, folders: Mapping[str, Path], scratch: Path, encoder: Any = None
) -> Any:
    """A loader of one rank, in this process; `scratch` keeps the blend."""
    blend = [
        {"weight": one.weight, "path": str(folders[one.key]), "split_part": "train"}
        for one in lock.sources
    ]
    path = scratch / "blend.yaml"
    head = {"__module__": "megatron.energon", "__class__": "MetadatasetV2"}
    path.write_text(yaml.safe_dump(head | {"splits": {"train": {"blend": blend}}}))
    dataset = get_train_dataset(
        path,
        worker_config=WorkerConfig(rank=0, world_size=1, num_workers=0, seed_offset=1),
        batch_size=1,
        shuffle_buffer_size=lock.packing.shuffle,
        max_samples_per_sequence=lock.packing.shuffle,
        packing_buffer_size=lock.packing.buffer,
        task_encoder=Bare(encoder or encoder_of(lock, folders), lock.context),
    )
    return get_savable_loader(dataset)
