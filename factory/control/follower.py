"""Follows one attempt of a run, and shows on its run's page what it says, until it has ended."""

import re
import sys
import time
from typing import Literal

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from factory.control.backend import RunCluster, State
from factory.control.clocks import LIMITS, Clocks
from factory.control.logs import Line, LineReader
from factory.control.messages import NamespaceMessageReader
from factory.control.verdict import PREEMPTED, judge
from factory.errors import RunFailed
from factory.spec import Launch

CANCEL_POLL_SECONDS = 2.0
LATE_CLOSE_SECONDS = 10.0
"""A driver that ended well has closed; a file server may show it a little later."""

CLOSED_SECONDS = 600.0
"""What a driver has that has said its last word, to end: it may hang on its way out, and KubeRay
does not see the end of one whose head it cannot reach."""

SAY_AGAIN_SECONDS = 600.0
"""Between two lines of the event log, each a row in a database, that say the same."""

_WAITED = re.compile(r"(?:; )?waiting [0-9a-z ]+$")
"""How long it has been waiting, which changes with every look."""

_CANCELLED = frozenset({dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED})


class Follower:
    """One attempt as it is followed: what was shown, and which clock runs."""

    def __init__(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        launch: Launch,
        cluster: RunCluster,
        reader: NamespaceMessageReader,
    ) -> None:
        self._context = context
        self._launch = launch
        self._log = cluster.log
        self._cluster = cluster
        self._reader = reader
        self._lines = LineReader(cluster.read_log())
        self._cancel_looked_at = time.monotonic()
        self._closed_at: float | None = None
        self._state = State(phase="queued")
        self._said = ""
        self._said_at = 0.0

    def to_the_end(self, poll_seconds: float, clocks: Clocks) -> None:
        """Show what the run says until it has ended.

        Raises:
            RunFailed: a limit of its spec has passed.
            DagsterExecutionInterruptedError: it was cancelled.
        """
        if self._launch.classification == "private":
            self._context.log.info(f"private run: its output is only in {self._log}")
        while True:
            self._state = self._cluster.poll()
            self._say(self._state)
            busy = self._show(self._lines.read())
            self._reader.pump()
            if self._state.ended or self._is_over():
                return
            self._check_limits(clocks)
            self._check_cancelled()
            if not busy:
                time.sleep(poll_seconds)

    def _is_over(self) -> bool:
        """Whether its driver has closed so long ago that its cluster will not say so any more."""
        if not self._reader.closed:
            self._closed_at = None
            return False
        now = time.monotonic()
        self._closed_at = self._closed_at or now
        if now - self._closed_at < CLOSED_SECONDS:
            return False
        words = f"its driver has closed, and {CLOSED_SECONDS:.0f} s later had not ended"
        self._context.log.warning(f"{words}: it hangs, or its cluster does not see its end")
        self._state = State(phase="gone", reason=words)
        return True

    def last_words(self) -> None:
        """Show what the run wrote up to its end."""
        for lines in self._lines.finish():
            self._show(lines)
        may_have_closed = self._state.phase in ("succeeded", "gone") and self._reader.opened
        self._reader.finish(LATE_CLOSE_SECONDS if may_have_closed else 0.0)

    @property
    def taken(self) -> Literal["evicted", "lost"] | None:
        """How the run's place was lost, if it was before its driver was done.

        A driver that has closed without an exception is, unless it says by its exit code that it
        was told to stop.
        """
        well = self._reader.closed and self._reader.exception is None
        return None if well and self._state.exit_code != PREEMPTED else self._state.taken

    @property
    def reason(self) -> str:
        """What ended it, as the backend says it."""
        return self._state.reason

    def judge(self) -> None:
        """Return if the run succeeded, raise `RunFailed` if not."""
        judge(
            self._state,
            closed=self._reader.closed,
            exception=self._reader.exception,
            tail=self._lines.tail,
            log=self._log,
            classification=self._launch.classification,
        )

    def _say(self, state: State) -> None:
        """What is new; and that it still waits, now and then."""
        words = _WAITED.sub("", state.reason)
        if not words or state.ended:
            return
        due = time.monotonic() - self._said_at >= SAY_AGAIN_SECONDS
        if words != self._said or (state.waits and due):
            self._said, self._said_at = words, time.monotonic()
            self._context.log.info(state.reason)

    def _show(self, lines: list[Line]) -> bool:
        if lines and self._launch.classification == "public":
            sys.stdout.write(
                "".join(f"{line.text}\n" if line.ends else line.text for line in lines)
            )
            sys.stdout.flush()
        return bool(lines)

    def _check_limits(self, clocks: Clocks) -> None:
        for clock in clocks.tick(self._state.phase, time.monotonic()):
            words, advice = LIMITS[clock]
            why = f" ({self._state.reason})" if self._state.reason else ""
            raise RunFailed(f"The run is stopped, because {words}{why}. {advice}.")

    def _check_cancelled(self) -> None:
        """A run that was not started by a launcher gets no signal when it is cancelled."""
        if time.monotonic() - self._cancel_looked_at < CANCEL_POLL_SECONDS:
            return
        self._cancel_looked_at = time.monotonic()
        if is_cancelled(self._context):
            self._context.log.info("cancelled: stopping the run")
            raise DagsterExecutionInterruptedError


def is_cancelled(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> bool:
    """Whether somebody has cancelled the Dagster run."""
    run = context.instance.get_run_by_id(context.run_id)
    return run is not None and run.status in _CANCELLED
