"""Background: a thread that does one thing after another, so that training waits for none."""

import queue
import threading
from collections.abc import Callable


class Background[T]:
    """Does things in the order in which they are put, until it is closed or one of them fails."""

    def __init__(
        self, name: str, do: Callable[[T], None], *, first: Callable[[], None] | None = None
    ) -> None:
        """Start the thread.

        Args:
            name: of the thread.
            do: what is done with each thing.
            first: is called before all of them.
        """
        self._do = do
        self._first = first
        self._queue: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, thing: T) -> None:
        """Queue a thing; never waits.

        Raises:
            Exception: an earlier one failed.
        """
        self.check()
        self._queue.put((thing,))

    def check(self) -> None:
        """Return unless something failed.

        Raises:
            Exception: what it failed with.
        """
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Wait until everything that was put is done, and end the thread.

        Raises:
            Exception: something failed.
        """
        self._queue.put(None)
        self._thread.join()
        self.check()

    def _work(self) -> None:
        try:
            if self._first is not None:
                self._first()
            while (queued := self._queue.get()) is not None:
                self._do(*queued)
        except BaseException as failure:
            self._failure = failure
