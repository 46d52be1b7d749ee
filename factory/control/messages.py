"""Reads a run's Pipes messages from its chunk files, each once, in order, across restarts.

`training.messages` writes the chunks. The reader has no thread: the client calls `pump`. What was
handled is remembered in a cursor file beside the chunks, so a reader that starts again passes over
what its predecessor showed; results, which Dagster takes only when the step ends, are collected
again. A chunk that cannot be read, or never came, is shown as an error and never passed over in
silence: what came after it is read.

Free text of a private run (log messages, what an exception said) is not given to Dagster, whose
storage has other readers; it stays in the chunks. Phases and steps hold no data and are shown.
"""

import json
import logging
import re
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import dagster as dg
from dagster_pipes import PIPES_PROTOCOL_VERSION_FIELD, PipesException, PipesMessage, PipesParams

from factory.control.chunks import is_there, numbers_after
from factory.control.page import Page
from factory.errors import FactoryError, NamespaceError
from factory.namespace import RunDirectory
from factory.namespace.run_files import contents
from factory.reports import MESSAGES_DIRECTORY_PARAM, chunk_name

CURSOR = "cursor"
LARGEST_CHUNK_BYTES = 64 << 20
"""The writer begins one twice a second; what is larger would fill the memory of this process."""

LARGEST_CURSOR_BYTES = 64 << 20
"""A line for each chunk: ten million of them."""

LOOK_AGAIN_SECONDS = 5.0
"""A network file system may remember that a file was not there; listing its directory corrects it,
and shows whether a later chunk has come without this one."""

GAPS_NAMED = 20
"""Of those that a file server leaves there are few; a pod can make a million."""

_CURSOR_LINE = re.compile(rb"\d{1,12}\n")
_FREE_TEXT = frozenset({"log", "log_external_stream"})


def messages_name(attempt: int) -> str:
    """Where the messages of an attempt go, inside the run's directory.

    Later attempts have their own, so that a driver of an earlier one that still lives is not heard.
    """
    return "messages" if attempt == 1 else f"messages/attempt-{attempt}"


class NamespaceMessageReader(dg.PipesMessageReader):
    """The messages of one attempt of a run."""

    def __init__(
        self,
        run_directory: RunDirectory,
        log: logging.Logger,
        *,
        attempt: int = 1,
        root: Path | None = None,
        before: Mapping[str, int] | None = None,
    ) -> None:
        """`root` is the namespace as the driver sees it, where that is not as it is seen here.

        `before` are the lines, and how often each, that the page has of who followed the attempt
        until now. Whoever was killed between a line and the cursor has shown more than that says.
        """
        self._run_directory = run_directory
        self._log = log
        self._name = messages_name(attempt)
        self._directory = run_directory.directory(self._name)
        inside = self._directory.relative_to(run_directory.root)
        self._for_driver = (root or run_directory.root) / inside
        self._private = run_directory.classification == "private"
        self._shown_up_to = _cursor(run_directory, f"{self._name}/{CURSOR}")
        self._next = 1
        self._looked_at = time.monotonic()
        self._page = Page(log, before or {})
        self._handler: dg.PipesMessageHandler | None = None
        self.opened = False
        """Whether a driver has opened."""
        self.closed = False
        """Whether the driver that opened last has also closed."""
        self.exception: PipesException | None = None
        """What it closed with."""
        self.unreadable: list[str] = []
        """One sentence for each message that could not be read."""
        self._warned: set[str] = set()

    @property
    def expected_writer_count(self) -> int:
        """One driver. Dagster's own property of that name warns that it is a preview."""
        return 1

    @contextmanager
    def read_messages(self, handler: dg.PipesMessageHandler) -> Generator[PipesParams]:
        """Tell the driver where to write. Nothing is read until `pump` is called."""
        self._handler = handler
        yield {MESSAGES_DIRECTORY_PARAM: str(self._for_driver)}

    def no_messages_debug_text(self) -> str:
        """For Dagster's warning when nothing came."""
        return f"Messages were expected in {self._directory}."

    def pump(self) -> None:
        """Handle every chunk that is there."""
        while (data := self._chunk()) is not None:
            for line in data.splitlines():
                self._handle_line(line)
            if self._next > self._shown_up_to:
                self._remember()
                self._page.goes_on()
            self._next += 1

    def finish(self, patience_seconds: float) -> None:
        """Handle what is left, also behind chunks that are missing.

        The closing message is waited for, because a file server may show it late; and so is what is
        missing, because nothing is read before it while it may come.
        """
        deadline = time.monotonic() + patience_seconds
        while True:
            self._looked_at = float("-inf")
            self.pump()
            if self.closed or time.monotonic() >= deadline:
                break
            time.sleep(0.1)
        try:
            self._read_behind_gaps()
        except OSError as error:
            self._warn_once(f"Messages may be missing, because nobody can list them: {error}")

    def _read_behind_gaps(self) -> None:
        gaps = 0
        while later := numbers_after(self._directory, self._next):
            for number in later:
                if number > self._next:
                    gaps += 1
                    self._pass_over(number, named=gaps <= GAPS_NAMED)
                if number == self._next:
                    self._looked_at = float("-inf")
                    self.pump()
        if gaps > GAPS_NAMED:
            self._unreadable(f"before it, chunks are missing in {gaps - GAPS_NAMED:,} more places")

    def _pass_over(self, number: int, *, named: bool) -> None:
        """Go on from that number: what should have come before it never came."""
        if named:
            first, last = chunk_name(self._next), chunk_name(number - 1)
            missing = f"{first} is" if first == last else f"{first} to {last} are"
            self._unreadable(f"{missing} missing, but {chunk_name(number)} came after it")
        self._next = number

    def _chunk(self) -> bytes | None:
        try:
            return self._contents(self._next)
        except NamespaceError as error:  # what a pod of the run made there, and it stays
            if is_there(self._directory, self._next):
                self._unreadable(str(error))
                return b""
            self._warn_once(f"Messages wait: {error}")
        except OSError as error:
            self._warn_once(f"Messages wait, because they cannot be read now: {error}")
        return None

    def _contents(self, number: int) -> bytes | None:
        name = f"{self._name}/{chunk_name(number)}"
        try:
            return contents(self._run_directory.path, name, LARGEST_CHUNK_BYTES)
        except FileNotFoundError:
            if not self._is_listed(number):
                return None
        return contents(self._run_directory.path, name, LARGEST_CHUNK_BYTES)

    def _is_listed(self, number: int) -> bool:
        now = time.monotonic()
        if now - self._looked_at < LOOK_AGAIN_SECONDS:
            return False
        self._looked_at = now
        return is_there(self._directory, number)

    def _remember(self) -> None:
        try:
            self._run_directory.append(f"{self._name}/{CURSOR}", str(self._next))
        except (FactoryError, OSError) as error:
            self._warn_once(f"A restart would show messages again: {error}")

    def _handle_line(self, line: bytes) -> None:
        handler = self._handler
        if handler is None:
            raise RuntimeError("pump was called before the Pipes session was opened")
        try:
            message = _message(line)
            again = self._next <= self._shown_up_to
            self._note(message, again=again)
            if not (message["method"] in _FREE_TEXT and self._is_kept_back(message, again=again)):
                handler.handle_message(message)
        except Exception as error:  # whatever it holds, the rest must be read
            self._unreadable(type(error).__name__ + ("" if self._private else f": {error}"))

    def _is_kept_back(self, message: PipesMessage, *, again: bool) -> bool:
        text = str((message["params"] or {}).get("message"))
        return self._private or self._page.has(text) or again

    def _note(self, message: PipesMessage, *, again: bool) -> None:
        params: dict[str, Any] = dict(message["params"] or {})
        match message["method"]:
            case "opened":
                self.opened, self.closed, self.exception = True, False, None
            case "closed":
                self.closed, self.exception = True, params.get("exception")
                if again or self._private:
                    params.pop("exception", None)
                    message["params"] = params
            case "report_custom_message":
                self._page.show(params.get("payload"), again=again)
            case _:
                pass

    def _unreadable(self, problem: str) -> None:
        sentence = f"{self._directory / chunk_name(self._next)}: {problem}"
        self.unreadable.append(sentence)
        self._log.error(f"A message of the run cannot be read. {sentence}")

    def _warn_once(self, problem: str) -> None:
        """Of what may pass by itself: a file server that is away, a disk that is full."""
        if problem not in self._warned:
            self._warned.add(problem)
            self._log.warning(problem)


def _message(line: bytes) -> PipesMessage:
    message = json.loads(line)
    if not isinstance(message, dict) or PIPES_PROTOCOL_VERSION_FIELD not in message:
        raise ValueError(f"not a Pipes message: {line[:200]!r}")
    return cast("PipesMessage", message)


def _cursor(run: RunDirectory, name: str) -> int:
    """The last chunk on record. A line that a crash cut off does not count, nor one of a pod's."""
    try:
        data = contents(run.path, name, LARGEST_CURSOR_BYTES)
    except (FileNotFoundError, NamespaceError):
        return 0
    lines = data.splitlines(keepends=True)
    return max((int(line) for line in lines if _CURSOR_LINE.fullmatch(line)), default=0)
