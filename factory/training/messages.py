"""Writes a run's Pipes messages as numbered chunk files, which survive either side's restart.

A chunk is written to a hidden name, synced, then given its number in one step, so a reader sees a
whole chunk or none. The number is taken with a hard link, which fails where the name exists: a
driver that is started a second time in the same directory goes on after the last number, and two
that run by mistake cannot overwrite each other. The reader is `control.messages`; what the
messages hold is in `reports`.
"""

import json
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dagster_pipes import (
    PipesMessage,
    PipesMessageWriter,
    PipesMessageWriterChannel,
    PipesParams,
)

from factory.errors import Superseded
from factory.reports import MESSAGES_DIRECTORY_PARAM, chunk_name

RETRY_SECONDS = 5.0
"""Between attempts while the namespace cannot be written: a full disk, a server that is away."""


class NamespaceMessageWriter(PipesMessageWriter["ChunkChannel"]):
    """Give this to `open_dagster_pipes` in a driver.

    `check` raises `Superseded` where the driver has lost the run: then it publishes nothing more.
    """

    def __init__(
        self, *, interval_seconds: float = 0.5, check: Callable[[], None] = lambda: None
    ) -> None:
        self.interval_seconds = interval_seconds
        self._check = check

    @contextmanager
    def open(self, params: PipesParams) -> Generator["ChunkChannel"]:
        """Open the channel into the directory that the client named."""
        channel = ChunkChannel(
            Path(params[MESSAGES_DIRECTORY_PARAM]),
            interval_seconds=self.interval_seconds,
            check=self._check,
        )
        try:
            yield channel
        finally:
            channel.close()

    def get_opened_extras(self) -> dict[str, str | int]:
        """Which process opened Pipes, so that a second driver can be told from the first."""
        return {"pid": os.getpid(), "host": os.uname().nodename}


class ChunkChannel(PipesMessageWriterChannel):
    """Publishes messages in order: at once after a quiet interval, together in a busy one."""

    def __init__(
        self,
        directory: Path,
        *,
        interval_seconds: float,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._check = check
        self._interval = interval_seconds
        self._waiting: deque[str] = deque()
        self._next = 1 + max((int(path.stem) for path in directory.glob("[0-9]*.jsonl")), default=0)
        self._last_published = float("-inf")
        self._changed = threading.Condition()
        self._publishing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._publish_while_open, daemon=True)
        self._thread.start()

    def write_message(self, message: PipesMessage) -> None:
        """Queue one message. Never waits for the file system."""
        line = json.dumps(message)
        with self._changed:
            self._waiting.append(line)
            self._changed.notify()

    def close(self) -> None:
        """Publish what is left.

        Raises:
            OSError: the namespace cannot be written, so messages are lost.
            Superseded: a later attempt holds the run, so they may not be written.
        """
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._publish()

    def _publish_while_open(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                quiet = self._last_published + self._interval - time.monotonic()
                self._changed.wait_for(lambda: self._closed, timeout=max(0.0, quiet))
            try:
                self._publish()
            except Superseded:
                return  # closing says it again, in the driver's own thread
            except OSError as error:
                sys.stderr.write(f"messages wait, because {self._directory} refuses: {error}\n")
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, timeout=RETRY_SECONDS)

    def _publish(self) -> None:
        with self._publishing:
            with self._changed:
                lines = list(self._waiting)
            if not lines:
                return
            self._check()
            self._write_chunk("".join(f"{line}\n" for line in lines).encode())
            with self._changed:
                for _ in lines:
                    self._waiting.popleft()
            self._last_published = time.monotonic()

    def _write_chunk(self, data: bytes) -> None:
        scratch = self._directory / f".writing-{uuid.uuid4().hex}"
        try:
            with scratch.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            while not self._take_number(scratch):
                self._next += 1
            self._next += 1
        finally:
            scratch.unlink(missing_ok=True)
        self._sync_directory()

    def _take_number(self, scratch: Path) -> bool:
        try:
            os.link(scratch, self._directory / chunk_name(self._next))
        except FileExistsError:
            # A reply lost by NFS makes the client try again and find its own link.
            return scratch.stat().st_nlink > 1
        return True

    def _sync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
