"""A deadline for a whole answer: a socket's own time-out begins again with every byte that comes.

So an answer that drips would never end, and whoever waits for it would look at no clock meanwhile.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Generator


@contextlib.contextmanager
def within(seconds: float, cut: Callable[[], None]) -> Generator[None]:
    """Call `cut`, on another thread, if the block takes longer than that."""
    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def shut(connection: socket.socket) -> None:
    """Let a thread that waits at the socket go on, with an error."""
    with contextlib.suppress(OSError):  # the plain one's: that of TLS is no use meanwhile
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
