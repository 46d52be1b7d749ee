"""What clusters on one machine may not share: ports, and the network of their pods.

A claim is a lock on a file, which ends with the process that holds it, however it ends. What a
killed one left running still holds the thing itself, so that is tried as well.
"""

import contextlib
import fcntl
import os
import random
import socket
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

PORTS = range(21_000, 31_000)
"""Below those that the system gives to whoever connects, so a restarted server finds its own."""
NETWORKS = range(256)
"""N in 10.88.N.0/24."""


class Claims:
    """What one process of the harness has claimed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: list[int] = []

    def port(self) -> int:
        """A port that stays this one's until `release`.

        Raises:
            RuntimeError: every port of the range is taken.
        """
        return self._first("port", random.sample(PORTS, len(PORTS)), _listen)

    def network(self) -> str:
        """The first three numbers of a network for pods, whose host has the address 1 in it.

        Raises:
            RuntimeError: every network of the range is taken.
        """
        return f"10.88.{self._first('network', NETWORKS, _is_nobodys)}"

    def release(self) -> None:
        """Give everything back."""
        while self._locks:
            os.close(self._locks.pop())

    def _first(self, kind: str, numbers: Iterable[int], attempt: Callable[[int], None]) -> int:
        folder = self._folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        for number in numbers:
            lock = os.open(folder / str(number), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                attempt(number)
            except OSError:
                os.close(lock)
                continue
            self._locks.append(lock)
            return number
        raise RuntimeError(f"Every {kind} that clusters may use is taken: see {folder}.")


@contextlib.contextmanager
def claims(folder: Path) -> Generator[Claims]:
    """Claims that are given back at the end."""
    held = Claims(folder)
    try:
        yield held
    finally:
        held.release()


def _listen(port: int) -> None:
    """Fails where something listens there, on any address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("", port))


def _is_nobodys(network: int) -> None:
    """Fails where this machine has the network's first address already."""
    address = f"10.88.{network}.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return
    raise FileExistsError(f"{address} is an address of this machine")
