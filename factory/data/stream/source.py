"""`Source`: one dataset, over and over, shuffled: each sample once in every epoch.

Energon reads; its own shuffle buffer does not remember, in a checkpoint, that an epoch had ended
while samples of it were still waiting, and would fill up with the next one when continued.
"""

from collections.abc import Iterator
from typing import Any

from megatron.energon import SavableDataset, WorkerConfig
from megatron.energon.rng import WorkerRng
from megatron.energon.wrappers.base import BaseWrapperDataset
from megatron.energon.wrappers.buffer import SavableSampleBuffer


class Source(BaseWrapperDataset[Any, Any]):
    """The samples of a dataset's part that one loader worker reads."""

    _savable_fields = ("_rng", "_buffer", "_read")

    def __init__(
        self, dataset: SavableDataset[Any], *, shuffle: int, worker_config: WorkerConfig
    ) -> None:
        """Wrap a dataset of Energon; `shuffle` samples wait to be drawn from at random."""
        super().__init__(dataset, worker_config=worker_config)
        self.samples: SavableDataset[Any] = dataset
        self.shuffle = shuffle
        self.reset_state_own()

    def reset_state_own(self) -> None:
        """Begin anew."""
        self._rng = WorkerRng(self.worker_config)
        self._buffer: SavableSampleBuffer[Any] = SavableSampleBuffer(
            self.samples, worker_config=self.worker_config
        )
        self._read = 0
        """Samples of this epoch that have come into the buffer."""

    def len_worker(self, worker_idx: int | None = None) -> int:
        """Samples of the part."""
        return self.samples.len_worker(worker_idx)

    def __iter__(self) -> Iterator[Any]:
        """Endlessly. The order of an epoch depends on the seed and on the epochs before."""
        self._buffer.worker_start()
        size = self.samples.len_worker()
        reading = iter(self.samples)
        while True:
            while self._read < size and len(self._buffer.buffer) < self.shuffle:
                self._buffer.append(next(reading))
                self._read += 1
            if not self._buffer.buffer:
                # One more step tells Energon's reader that its epoch is over.
                if next(reading, None) is not None:
                    raise RuntimeError(f"{self.samples} holds more than its {size} samples.")
                reading = iter(self.samples)
                self._read = 0
                continue
            yield self._buffer.pop(self._rng.randbelow(len(self._buffer.buffer)))

    def config(self) -> dict[str, Any]:
        """What decides the order."""
        return {
            "type": type(self).__qualname__,
            "dataset": self.samples.config(),
            "shuffle": self.shuffle,
        }
