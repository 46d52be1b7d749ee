"""Progress of a step: a line now and then, so that nobody wonders whether it still works."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

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
