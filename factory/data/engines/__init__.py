"""Engines: what runs a function over the shards of a step. None has a say in the result.

`local` runs in this process, `ray` on a Ray cluster, with Ray Data. Which shards there are is in
`factory.data.shards`, what keeps a finished one is in `factory.data.phases`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol, get_args

from factory.data.progress import Meter
from factory.data.shards import Shard
from factory.errors import StepError

type Name = Literal["local", "ray"]

NAMES: tuple[Name, ...] = get_args(Name.__value__)
LOCAL: Name = "local"

type Tick = Callable[[int], None]
"""Told how many rows more were read."""


class Work(Protocol):
    """What is done with a shard, here or by a worker elsewhere: it must be picklable.

    It writes files and returns nothing: no text of a row passes through an engine.
    """

    @property
    def reports(self) -> Path:
        """A directory for what workers elsewhere have to tell, in the tree of the dataset."""
        ...

    def __call__(self, shard: Shard, tick: Tick) -> None:
        """Read the shard and write what becomes of it."""
        ...


class Engine(Protocol):
    """Runs work over shards."""

    def map(self, work: Work, shards: Sequence[Shard], meter: Meter) -> Iterator[Shard]:
        """Do the work for every shard; gives each when it is done, in their order.

        Raises:
            StepInterrupted: a worker died, again and again.
            Exception: what the work raised on a shard.
        """
        ...


def opened(name: str) -> AbstractContextManager[Engine]:
    """The engine of that name, which may hold processes while the context is open.

    Raises:
        StepError: there is no such engine.
    """
    match name:
        case "local":
            from factory.data.engines.local import opened as open_engine
        case "ray":
            from factory.data.engines.ray import opened as open_engine
        case _:
            raise StepError(f"There is no engine {name!r}; write one of {', '.join(NAMES)}.")
    return open_engine()
