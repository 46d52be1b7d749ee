"""`Batches`: samples packed into the batches of a run, each with its account.

As many sequences wait as the buffer of the mix holds. They are packed together when all packs of
those before them are given; new ones come in while packs are given, a few at a time, so that no
batch waits for a whole buffer to be read. A checkpoint holds how samples were drawn and which
sequences were packed together. From these the packs are made again.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from megatron.energon import WorkerConfig
from megatron.energon.wrappers.base import BaseWrapperDataset
from megatron.energon.wrappers.buffer import SavableSampleBuffer
from numpy.typing import NDArray

from factory.data.packing import Packing, groups, lay_out
from factory.data.stream.account import BatchAccount, digest_of
from factory.data.stream.blend import Blend
from factory.data.stream.collate import Fragment, Laid, collate
from factory.data.stream.drawn import Drawn
from factory.data.stream.pictures import PICTURES, with_pictures
from factory.data.stream.reader import Reader

ACCOUNT = "account"
"""Where a batch has its `BatchAccount`."""


class Batches(BaseWrapperDataset[Drawn, dict[str, Any]]):
    """Batches of one loader worker."""

    _savable_fields = (
        "_buffer",
        "_fragments",
        "_packed",
        "_context",
        "_given",
        "_made",
        "_dropped",
    )

    def __init__(self, blend: Blend, reader: Reader, *, worker_config: WorkerConfig) -> None:
        """Pack what `blend` draws."""
        super().__init__(blend, worker_config=worker_config)
        self.blend = blend
        self.lock = blend.lock
        self.reader = reader
        self.reset_state_own()

    def reset_state_own(self) -> None:
        """Begin anew."""
        self._buffer: SavableSampleBuffer[Drawn] = SavableSampleBuffer(
            self.blend, worker_config=self.worker_config
        )
        self._packed = 0
        """Samples at the front of the buffer of which sequences are packed; others wait."""

        self._fragments: list[Fragment] = []
        """The sequences that are packed, in the order in which they were given to the packer."""

        self._context = 0
        """Of those packs."""

        self._given = 0
        """Of those packs, how many."""

        self._made = 0
        """Batches."""

        self._dropped: dict[tuple[int, str], tuple[int, int]] = {}
        """Since the last batch."""

        self._packs: list[Laid] = []
        self._waiting = 0
        """Sequences that are not given yet."""

    def len_worker(self, worker_idx: int | None = None) -> int:
        """Samples to draw from; of how many batches they are part, only reading tells."""
        return self.blend.len_worker(worker_idx)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Endlessly, or until nothing can be drawn and nothing waits.

        Raises:
            RunFailed: there is nothing more to train on.
        """
        self._buffer.worker_start()
        self._packs = self._laid()
        self._waiting = sum(len(one.pack.lengths) for one in self._packs[self._given :])
        self._waiting += sum(len(one.sequences) for one in self._buffer.buffer[self._packed :])
        worker = self.worker_config.rank_worker_id()
        drawing = iter(self.blend)
        while True:
            self.blend.enter(self.lock.stage(self.reader.step(worker, self._made)))
            if self._packs and self._context != self.blend.context:
                self._pack([part for one in self._packs[self._given :] for part in one.remaining])
            yield self._batch([self._next(drawing) for _ in range(self.reader.micro_batch_size)])

    def _next(self, drawing: Iterator[Drawn]) -> Laid:
        """The next pack."""
        self._fill(drawing)
        if self._given == len(self._packs):
            self._pack([])
        if not self._packs:
            raise self.blend.ended or RuntimeError(
                "A full buffer gave no pack; a defect of the packer."
            )
        laid = self._packs[self._given]
        self._given += 1
        self._waiting -= len(laid.pack.lengths)
        return laid

    def _fill(self, drawing: Iterator[Drawn]) -> None:
        """Draw until the buffer is full, or there is nothing more to draw in this stage."""
        while self.blend.ended is None and self._waiting < self.lock.packing.buffer:
            made = next(drawing)
            for reason, (samples, tokens) in made.dropped.items():
                before = self._dropped.get((made.source, reason), (0, 0))
                total = (before[0] + samples, before[1] + tokens)
                self._dropped[made.source, reason] = total
            if made.sequences:
                self._buffer.append(made)
                self._waiting += len(made.sequences)

    def _pack(self, carried: list[Fragment]) -> None:
        """Pack all that waits, for the stage's context; `carried` was packed for a shorter one."""
        samples = self._buffer.buffer
        kept = sorted({place for place, *_ in carried})
        place = {old: new for new, old in enumerate(kept)}
        waiting = samples[self._packed :]
        self._fragments = [(place[old], part, start, stop) for old, part, start, stop in carried]
        self._fragments += [
            (at, part, 0, len(sequence.tokens))
            for at, one in enumerate(waiting, start=len(kept))
            for part, sequence in enumerate(one.sequences)
        ]
        remaining = [samples[old] for old in kept] + waiting
        self._buffer.clear()
        self._buffer.extend(remaining)
        self._packed = len(remaining)
        self._context = self.blend.context
        self._given = 0
        self._packs = self._laid()
        self._waiting = sum(len(one.pack.lengths) for one in self._packs)

    def _laid(self) -> list[Laid]:
        """The packs of the fragments: a function of them, of the context and of the seed."""
        if not self._fragments:
            return []
        packing = Packing(
            context=self._context,
            regime=self.lock.packing.regime,
            buffer=self.lock.packing.buffer,
            seed=self.reader.seed,
            alignment=self.lock.packing.alignment,
        )
        buffer = list(self._buffer.buffer)
        lengths = [stop - start for *_, start, stop in self._fragments]
        return [
            Laid(pack, [self._fragments[at] for at in group], buffer)
            for group in groups(lengths, packing)
            for pack in lay_out([lengths[at] for at in group], packing)
        ]

    def _batch(self, laid: list[Laid]) -> dict[str, Any]:
        """The packs as one batch."""
        made = collate(laid)
        images = self.blend.drawing.images
        arrays = made.arrays if images is None else with_pictures(made, images)
        slots = sum(one.pack.packing.context for one in laid)
        account = BatchAccount(
            counts=made.counts(len(self.lock.sources), patches=images is not None),
            slots=slots,
            ending=slots - sum(one.pack.used for one in laid),
            aligning=sum(one.pack.aligning for one in laid),
            drawn=made.drawn,
            digest=digest_of(arrays),
            dropped=self._dropped,
        )
        self._dropped = {}
        self._made += 1
        return {**tensors(arrays, made.longest), ACCOUNT: account}

    def config(self) -> dict[str, Any]:
        """What decides the batches."""
        return {
            "type": type(self).__qualname__,
            "blend": self.blend.config(),
            "micro_batch_size": self.reader.micro_batch_size,
            "global_batch_size": self.reader.global_batch_size,
            "seed": self.reader.seed,
        }


def tensors(arrays: Mapping[str, NDArray[Any]], longest: int) -> dict[str, torch.Tensor]:
    """The arrays under the names that Megatron-Bridge reads, in one row."""
    batch: dict[str, torch.Tensor] = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        head, _, padded = name.partition("cu_seqlens")
        if name.startswith("cu_seqlens"):
            batch[f"cu_seqlens_q{padded}"] = batch[f"cu_seqlens_kv{padded}"] = tensor
        elif head in PICTURES:
            batch[name] = tensor
        else:
            batch[name] = tensor.unsqueeze(-2)
    batch["max_seqlen_q"] = batch["max_seqlen_kv"] = torch.tensor(longest, dtype=torch.int32)
    return batch
