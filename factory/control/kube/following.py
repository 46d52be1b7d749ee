"""An answer that need not end, block by block, without waiting for the next block for ever.

A thread reads it, because a read that is given up in the middle of a block cannot be taken up
again. The thread holds a few blocks and waits while nobody takes them.
"""

import contextlib
import queue
import threading
from collections.abc import Generator

from factory.control.kube.link import Exchange
from factory.errors import ClusterError, ClusterOutOfReach

QUEUED_BLOCKS = 8
IDLE_SECONDS = 1.0


def followed(exchange: Exchange) -> Generator[bytes]:
    """The body as it comes; `b""` where nothing came for a moment. It ends with an error only.

    Raises:
        ClusterError: as `Exchange`; also where the other side says that this was all.
    """
    reading = _Reading(exchange)
    reading.start()
    try:
        while True:
            yield reading.next(IDLE_SECONDS)
    finally:
        reading.leave()


class _Reading(threading.Thread):
    def __init__(self, exchange: Exchange) -> None:
        super().__init__(name="dashboard", daemon=True)
        self._exchange = exchange
        self._read: queue.Queue[bytes | ClusterError] = queue.Queue(QUEUED_BLOCKS)
        self._left = threading.Event()

    def run(self) -> None:
        with contextlib.closing(self._exchange) as exchange:
            try:
                exchange.begin()
                for block in exchange.blocks():
                    self._put(block)
                self._put(ClusterOutOfReach(f"{exchange} has ended."))
            except ClusterError as error:
                self._put(error)
            except Exception as error:  # else whoever takes the blocks waited for ever
                self._put(ClusterOutOfReach(f"{exchange} has failed ({type(error).__name__})."))

    def next(self, seconds: float) -> bytes:
        try:
            item = self._read.get(timeout=seconds)
        except queue.Empty:
            return b""
        if isinstance(item, ClusterError):
            raise item
        return item

    def leave(self) -> None:
        self._left.set()
        self._exchange.interrupt()

    def _put(self, item: bytes | ClusterError) -> None:
        while not self._left.is_set():
            with contextlib.suppress(queue.Full):
                self._read.put(item, timeout=IDLE_SECONDS)
                break
