"""Progress for a person: one line a message, with the seconds since the command began."""

import time

from rich.console import Console
from rich.text import Text


class Progress:
    """Writes to standard error, so that `--json` leaves standard output to the facts."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, soft_wrap=True, quiet=quiet)
        self._start = time.monotonic()

    def line(self, message: str) -> None:
        """Print one message."""
        seconds = time.monotonic() - self._start
        self._console.print(Text(f"{seconds:6.1f} s  ", "dim") + Text(message))

    def headline(self, message: str) -> None:
        """Print the title of a part."""
        self._console.print(Text(f"\n{message}", "bold"))
