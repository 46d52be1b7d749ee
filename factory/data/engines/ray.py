"""The engine for large inputs: a task of Ray Data for each shard.

Ray runs in a process of its own, `driver`: it changes signal handlers, loggers and the environment
of the process that it is used in. That process gets the work pickled, once, and says which shards
are done. Nothing of a row passes: a task is given the number of its shard, writes its files into
the work directory, and gives back its number. What it prints and what it raises goes into that
directory too, so that neither Ray's logs nor its object store hold any of it.
"""

import contextlib
import functools
import multiprocessing.connection
import os
import pickle
import secrets
import signal
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from factory.data.engines import Work
from factory.data.engines.reports import Reports
from factory.data.progress import Meter
from factory.data.shards import Shard
from factory.errors import StepInterrupted
from factory.settings import inherited_environment, ray_cluster

LOOK_SECONDS = 1.0
"""How often rows are counted that tasks have read."""

_SIZE = struct.Struct(">Q")


@dataclass
class Ray:
    """Runs work on the cluster that the driver is connected to."""

    driver: "subprocess.Popen[bytes]"
    _buffer: bytes = field(default=b"", init=False)

    def map(self, work: Work, shards: Sequence[Shard], meter: Meter) -> Iterator[Shard]:
        """Do the work for every shard; gives each in order, as soon as those before are done.

        Raises:
            StepInterrupted: a worker died, again and again, or Ray itself did.
            Exception: what the work raised on a shard.
        """
        reports = Reports.beginning(work)
        self._ask(work, shards, reports)
        waiting = {shard.number: shard for shard in shards}
        done: set[int] = set()
        for number in self._finished(reports, meter, len(shards)):
            reports.raise_failure(number)
            done.add(number)
            while (first := next(iter(waiting), None)) is not None and first in done:
                yield waiting.pop(first)

    def _ask(self, work: Work, shards: Sequence[Shard], reports: Reports) -> None:
        reports.plan(shards)
        request = _pickled((work, [shard.number for shard in shards], reports))
        stdin = _pipe(self.driver.stdin)
        with contextlib.suppress(BrokenPipeError):  # its end is seen when its answer is read
            stdin.write(_SIZE.pack(len(request)) + request)
            stdin.flush()

    def _finished(self, reports: Reports, meter: Meter, count: int) -> Iterator[int]:
        for _ in range(count):
            while (line := self._line()) is None:
                reports.raise_first()  # Ray says so later, when others are done as well
                meter.counted(reports.rows())
            meter.counted(reports.rows())
            word, _, value = line.partition(" ")
            if word != "done":
                raise _interrupted(value or "its process has ended")
            yield int(value)

    def _line(self) -> str | None:
        """The next line of the driver, an empty one when it has ended, or none after a while."""
        stdout = _pipe(self.driver.stdout)
        while b"\n" not in self._buffer:
            if not multiprocessing.connection.wait([stdout.fileno()], LOOK_SECONDS):
                return None
            more = os.read(stdout.fileno(), 1 << 16)
            if not more:
                return ""
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()


@contextlib.contextmanager
def opened(cpus: int | None = None) -> Generator[Ray]:
    """Start the driver, which connects to the cluster that is there or starts one of its own.

    Args:
        cpus: workers at once, on a cluster of its own; as many as the machine has cores if none.
    """
    driver = subprocess.Popen(  # noqa: S603  our own module
        [sys.executable, "-m", "factory.data.engines.driver", str(cpus or 0)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )
    try:
        yield Ray(driver)
    except BaseException:
        driver.send_signal(signal.SIGINT)  # else it would finish the shards that are begun
        raise
    finally:
        for pipe in (driver.stdin, driver.stdout):
            with contextlib.suppress(BrokenPipeError):
                _pipe(pipe).close()
        try:
            driver.wait(timeout=30)
        except subprocess.TimeoutExpired:
            driver.kill()
            driver.wait()


def read_request(stdin: IO[bytes]) -> bytes | None:
    """In the driver: what to do next; none when nothing is left to do."""
    head = stdin.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    return stdin.read(size)


def unpickled(request: bytes) -> tuple[Work, list[int], Reports]:
    """In the driver: the parts of a request."""
    return pickle.loads(request)  # noqa: S301  written by the process that started this one


def _pickled(value: object) -> bytes:
    """With functions that no module has by name, as a declaration may hold some."""
    from ray import cloudpickle

    dumps: Any = getattr(cloudpickle, "dumps")  # noqa: B009  the package does not list it
    return dumps(value)


@functools.cache
def _token() -> str:
    return secrets.token_hex(32)


def _environment() -> dict[str, str]:
    own = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        "PYTHONPATH": ":".join(path for path in sys.path if path),
    }
    if ray_cluster() is None:  # Ray listens on every address of the machine
        own |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _token()}
    return inherited_environment() | own


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise RuntimeError("the driver was started without a pipe")
    return pipe


def _interrupted(why: str) -> StepInterrupted:
    return StepInterrupted(
        f"Ray could not finish the shards: {why}. Was the memory short? Those that are finished "
        "are kept: run the step again, and it goes on from there."
    )
