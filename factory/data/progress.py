"""Progress of a step: a line now and then, so that nobody wonders whether it still works.

`Ticker` counts one kind of thing; `Meter` follows work over shards, of which it is known how much
there is.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from factory.data.shards import Shard
from factory.units import size

type Say = Callable[[str], None]

SECONDS_BETWEEN = 3.0


def silent(message: str) -> None:
    """Say nothing."""


@dataclass
class Ticker:
    """Counts what is done and says so at most every few seconds."""

    say: Say
    what: str
    """`rows read`, `entries written`."""

    started: float = field(default_factory=time.monotonic, init=False)
    count: int = field(default=0, init=False)
    _last: float = field(default_factory=time.monotonic, init=False)

    def tick(self, amount: int = 1) -> None:
        """Count so much more."""
        self.count += amount
        if time.monotonic() - self._last >= SECONDS_BETWEEN:
            self.report()

    def report(self) -> None:
        """Say how far it is."""
        self._last = time.monotonic()
        seconds = max(self._last - self.started, 1e-9)
        self.say(f"{self.count:,} {self.what} in {seconds:.1f} s, {self.count / seconds:,.0f}/s")

    def over[T](self, items: Iterable[T]) -> Iterator[T]:
        """Count items as they pass, and report when all have."""
        for item in items:
            yield item
            self.tick()
        self.report()


@dataclass
class Meter:
    """Follows the shards of a step, and says how far they are at most every few seconds."""

    say: Say
    what: str
    """`rows read`."""

    shards: int
    bytes: int
    """Of all shards together."""

    _started: float = field(default_factory=time.monotonic, init=False)
    _last: float = field(default_factory=time.monotonic, init=False)
    _rows: int = field(default=0, init=False)
    _rows_before: int = field(default=0, init=False)
    _done: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)
    _bytes_before: int = field(default=0, init=False)

    def found(self, shard: Shard, rows: int) -> None:
        """A shard was finished earlier: it counts as done, not as work of now."""
        self._rows += rows
        self._rows_before += rows
        self._bytes_before += shard.size
        self.done(shard)

    def done(self, shard: Shard) -> None:
        """Count a shard as finished."""
        self._done += 1
        self._bytes += shard.size
        self._now_and_then()

    def rows(self, amount: int) -> None:
        """Count so many rows more."""
        self._rows += amount
        self._now_and_then()

    def counted(self, rows: int) -> None:
        """Where rows are counted elsewhere: how many there are by now, since the work began."""
        self._rows = self._rows_before + rows
        self._now_and_then()

    def report(self) -> None:
        """Say how far it is."""
        self._last = time.monotonic()
        seconds = max(self._last - self._started, 1e-9)
        rate = (self._rows - self._rows_before) / seconds
        parts = [
            f"{self._rows:,} {self.what} in {seconds:.1f} s, {rate:,.0f}/s",
            f"{size(self._bytes)} of {size(self.bytes)}",
            f"{self._done:,} of {self.shards:,} shards done",
        ]
        if remaining := self._remaining(seconds):
            parts.append(remaining)
        self.say(", ".join(parts))

    def _remaining(self, seconds: float) -> str:
        """As long as the bytes that are left will take at the speed so far."""
        new = self._bytes - self._bytes_before
        if not new or self._done == self.shards:
            return ""
        left = seconds * (self.bytes - self._bytes) / new
        return f"about {left:,.0f} s left" if left < 90 else f"about {left / 60:,.0f} min left"

    def _now_and_then(self) -> None:
        if time.monotonic() - self._last >= SECONDS_BETWEEN:
            self.report()
