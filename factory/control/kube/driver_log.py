"""Copies a driver's log from its head into the run's directory, where `logs` reads it.

A thread follows the log, and connects again whenever it is cut off: a dropped connection, a head
that does not answer, a new head. What is on the head when `finish` is called is in the copy when it
says so; what a head that died had not sent is lost with its node. `log_copy` keeps anything from
being written twice, `dashboard` says how Ray sends it. Only a few blocks are ever in memory.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from factory.control.kube.dashboard import Dashboard, Job
from factory.control.kube.log_copy import LogCopy
from factory.errors import FactoryError
from factory.namespace import RunDirectory

NAME = "logs/driver.log"
CLOSING_SECONDS = 15.0
"""Longer than a connection takes to be made or given up."""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Between two connections: twice as long each time that one failed and brought nothing."""

    first_seconds: float = 1.0
    longest_seconds: float = 30.0


class DriverLog:
    """The driver's output from its first byte: give it to a `LineReader`."""

    def __init__(
        self,
        run: RunDirectory,
        connect: Callable[[], Dashboard | None],
        job_id: Callable[[], str],
        *,
        name: str = NAME,
        waits: Waits | None = None,
    ) -> None:
        """`connect` gives nothing, and `job_id` an empty text, while there is no head yet.

        Both are called on the thread. They may raise, and are called again later.

        Raises:
            NamespaceError: the copy cannot be opened inside the run's directory.
            OSError: it cannot be written.
        """
        self._connect = connect
        self._job_id = job_id
        self._waits = waits or Waits()
        self._copy = LogCopy(run, name)
        self._copying = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="driver log", daemon=True)
        self.path = run.path / name
        self.problem = ""
        """Why nothing comes at the moment, in a sentence; a second or two of it are normal."""

    def start(self) -> None:
        """Follow the log from now on."""
        self._thread.start()

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes of the copy from `offset` on; a link in its place is not read."""
        return self._copy.read(offset, limit)

    def finish(self, seconds: float) -> bool:
        """Stop following and fetch what is missing; whether the copy has all that the head has."""
        deadline = time.monotonic() + seconds
        self._ended.set()
        if not self._copying.acquire(timeout=max(0.0, seconds)):
            return False
        try:
            wait = self._waits.first_seconds
            while not (done := self._tried(lambda: self._fetch(deadline))):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                time.sleep(min(wait, left))
                wait = min(2 * wait, self._waits.longest_seconds)
            return done
        finally:
            self._copying.release()

    def close(self) -> None:
        """Stop following. What was copied can still be read."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(CLOSING_SECONDS)

    def _follow(self) -> None:
        wait = self._waits.first_seconds
        while not self._ended.is_set():
            size, since = self._copy.size, time.monotonic()
            with self._copying:
                self._tried(self._tail)
            held = time.monotonic() - since > self._waits.longest_seconds
            if held or self._copy.size > size or not self.problem:
                wait = self._waits.first_seconds
            self._ended.wait(wait)
            wait = min(2 * wait, self._waits.longest_seconds)

    def _tail(self) -> bool:
        """One connection, which ends with an error, or because all ends."""
        if (head := self._head()) is None:
            return False
        dashboard, job = head
        with closing(dashboard.tail(job)) as blocks:
            for block in blocks:
                if self._ended.is_set():
                    break
                if block:
                    self._copy.take(block)
                    self.problem = ""
        return True

    def _fetch(self, deadline: float) -> bool:
        """The whole log once more, to its end."""
        if (head := self._head()) is None:
            return False
        dashboard, job = head
        with closing(dashboard.logs(job, max(1.0, deadline - time.monotonic()))) as blocks:
            for block in blocks:
                self._copy.take(block)
        return True

    def _head(self) -> tuple[Dashboard, Job] | None:
        """A head on which the driver runs, or ran; the copy expects its log now."""
        dashboard = self._connect()
        job_id = self._job_id()
        job = dashboard.job_status(job_id) if dashboard is not None and job_id else None
        if dashboard is None or job is None or not job.node_id:
            return None
        self._copy.begin(f"job {job.id} on Ray's node {job.node_id}")
        return dashboard, job

    def _tried(self, work: Callable[[], bool]) -> bool:
        """A thread that ended here would take the log with it: whatever it was is tried again."""
        try:
            done = work()
        except (FactoryError, OSError) as error:
            self.problem = str(error)
            return False
        except Exception as error:  # not its text, which might quote a header
            self.problem = f"The driver's log cannot be followed now ({type(error).__name__})."
            return False
        self.problem = ""
        return done
