"""Watch: a thread of each rank that hears the word to stop, and that the run was taken over.

The driver leaves the word in the run's directory (`factory.namespace.attempts`), which reaches
every machine whatever a rank is busy with. It becomes the signal that Bridge listens to: at the end
of a step Bridge asks all ranks whether one has heard it, and saves.
"""

import os
import signal
import sys
import threading
from types import TracebackType

from factory.errors import NamespaceError, Superseded
from factory.namespace.attempts import Attempt

INTERVAL_SECONDS = 1.0
SUPERSEDED = 4
"""Exit code of a driver or rank whose run was taken over by a later attempt."""


class Watch:
    """Within: this process hears it. A rank that was replaced ends at once and writes no more."""

    def __init__(self, attempt: Attempt, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._attempt = attempt
        self._interval = interval_seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._before = signal.getsignal(signal.SIGTERM)
        self.told = False
        """Whether there was word to stop."""

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    @property
    def _listens(self) -> bool:
        """Whether somebody has taken the signal since: before, it would end this process."""
        return signal.getsignal(signal.SIGTERM) is not self._before

    def _watch(self) -> None:
        while not self._done.wait(self._interval):
            try:
                self._attempt.check()
                if not self.told and self._listens and self._attempt.told_to_stop:
                    self.told = True
                    os.kill(os.getpid(), signal.SIGTERM)
            except Superseded as error:
                sys.stderr.write(f"{error}\n")
                sys.stderr.flush()
                os._exit(SUPERSEDED)
            except (NamespaceError, OSError):
                continue  # a file server that is away; what is written fails by itself
