"""What a pod can leave where the control plane looks for a file of the run."""

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

SOON_SECONDS = 20


def _socket(path: Path, _target: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        there = os.open(path.parent, os.O_RDONLY)  # a long path is no address
        try:
            one.bind(f"/proc/self/fd/{there}/{path.name}")
        finally:
            os.close(there)


PLANTED: Mapping[str, Callable[[Path, Path], None]] = {
    "a link": lambda path, target: path.symlink_to(target),
    "a pipe": lambda path, _target: os.mkfifo(path),
    "a socket": _socket,
}
"""By its kind: makes one at a path; a link leads to a target."""


@contextlib.contextmanager
def ends_soon() -> Generator[None]:
    """An error where what is inside hangs."""

    def too_late(_signal: int, _frame: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SOON_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
