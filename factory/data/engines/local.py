"""The engine for inputs that one process can do: shard after shard, here."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from factory.data.engines import Work
from factory.data.progress import Meter
from factory.data.shards import Shard


class Local:
    """Runs work in this process."""

    def map(self, work: Work, shards: Sequence[Shard], meter: Meter) -> Iterator[Shard]:
        """Do the work for every shard, in order."""
        for shard in shards:
            work(shard, meter.rows)
            yield shard


def opened() -> AbstractContextManager[Local]:
    """The engine; there is nothing to close."""
    return nullcontext(Local())
