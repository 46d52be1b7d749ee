"""When to look at a run on a cluster again."""

import time

LOOK_SECONDS = 5.0
"""Between two looks at a run that goes on, or waits."""

HURRY_SECONDS = 1.0
"""Between two looks while something is about to change: until the operator has taken it up, and
while a pod ends."""

HURRIED_LOOKS, SLOWING = 5, 1.5
"""So many at that pace, then each so many times later than the one before: what takes long is a
server with much to do, to whom a hundred such runs would be most of it."""


class Pace:
    """The time of the next look."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._hurried = 0

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next look."""
        return time.monotonic() >= self._next_look

    def look_again(self, *, hurry: bool) -> None:
        """The next look comes soon where something is about to change."""
        self._hurried = self._hurried + 1 if hurry else 0
        slower = SLOWING ** max(0, self._hurried - HURRIED_LOOKS)
        wait = min(LOOK_SECONDS, HURRY_SECONDS * slower) if hurry else LOOK_SECONDS
        self._next_look = time.monotonic() + wait
