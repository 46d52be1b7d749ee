"""`Reader`: which part of a run's stream a process reads, and in which portions.

Each data-parallel rank reads its own part of every source, cut once more among its loader workers.
A rank takes batches from its workers in turn, so each worker can tell which step its next batch is
for, and change stage there without a word from anybody.
"""

from dataclasses import dataclass

from factory.errors import SpecError


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """A data-parallel rank's place."""

    seed: int
    """Of the order in which samples come, and of the order of packs."""

    micro_batch_size: int
    """Sequences of one batch."""

    global_batch_size: int
    """Sequences of one step, over all ranks."""

    rank: int = 0
    """Among data-parallel ranks: others read the same as one of these."""

    ranks: int = 1
    workers: int = 0
    """Loader processes; 0 reads in the process itself."""

    def __post_init__(self) -> None:
        share = self.micro_batch_size * self.ranks
        if share < 1 or self.global_batch_size % share or self.global_batch_size < 1:
            raise SpecError(
                f"A step of {self.global_batch_size} sequences cannot be shared by {self.ranks} "
                f"ranks in batches of {self.micro_batch_size}: it is no multiple of {share}. "
                "Change train.global_batch_size or train.micro_batch_size."
            )

    @property
    def readers(self) -> int:
        """Processes, over all ranks, of which each reads a part of its own."""
        return self.ranks * max(1, self.workers)

    @property
    def batches_per_step(self) -> int:
        """Of this rank."""
        return self.global_batch_size // (self.micro_batch_size * self.ranks)

    def step(self, worker: int, batch: int) -> int:
        """The step, from 0, that a worker's batch, from 0, is part of."""
        return (batch * max(1, self.workers) + worker) // self.batches_per_step
