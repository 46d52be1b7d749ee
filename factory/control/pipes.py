"""The Pipes client: gives a launch to a backend, follows it to its end, and always tears down.

The same client follows every kind of cluster; what differs is behind `backend`. Messages are read
by `messages`, output by `logs`, and `verdict` says what the end means. A driver that was preempted
(SIGTERM from elsewhere: a node that is drained, a queue that wants its place back) has saved; the
client starts the next attempt of the same run, on a cluster of its own.

What a person sees: phases and steps are lines of the run's event log; the driver's own output is
the step's "stdout", where a million lines cost nothing, while each line of the event log is a row
in Dagster's database. Of a private run the output is not shown at all, because Dagster's storage is
readable by people who may not read private data: the event log says where it is.
"""

import re
import sys
import time
from collections.abc import Sequence
from typing import Literal

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from factory.control.answers import Ended, answer
from factory.control.backend import Backend, RunCluster, State
from factory.control.clocks import CLOSING_SECONDS, LIMITS, Clocks, limits_of
from factory.control.logs import Line, LineReader
from factory.control.messages import NamespaceMessageReader
from factory.control.uninterrupted import stop
from factory.control.verdict import judge
from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.settings import Settings
from factory.spec import Launch

CANCEL_POLL_SECONDS = 2.0
LATE_CLOSE_SECONDS = 10.0
"""A driver that ended well has closed; a file server may show it a little later."""

CLOSED_SECONDS = 600.0
"""What a driver has that has said its last word, to end: it may hang on its way out, and KubeRay
does not see the end of one whose head it cannot reach."""

IDLE_ATTEMPTS = 3
"""Attempts that end without a new checkpoint, one after the other, before the run is given up."""

SAY_AGAIN_SECONDS = 600.0
"""Between two lines of the event log, each a row in a database, that say the same."""

_WAITED = re.compile(r"(?:; )?waiting [0-9a-z ]+$")
"""How long it has been waiting, which changes with every look."""

_CANCELLED = frozenset({dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED})


class FactoryPipesClient(dg.PipesClient):
    """Runs launches on one backend; the local one if none is given."""

    def __init__(
        self,
        settings: Settings,
        backend: Backend | None = None,
        *,
        grace_seconds: float | None = None,
        poll_seconds: float = 0.2,
    ) -> None:
        self._settings = settings
        self._backend = backend or _local(settings)
        self._grace_seconds = grace_seconds
        self._poll_seconds = poll_seconds

    def run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        launch: Launch,
        run_directory: RunDirectory,
    ) -> dg.PipesClientCompletedInvocation:
        """Run a launch to its end, in as many attempts as it takes.

        Raises:
            RunFailed: it did not succeed; the message is for the run's page.
            DagsterExecutionInterruptedError: it was cancelled.
        """
        clocks = Clocks(limits_of(launch.spec), self._backend.spent())
        ended = self._backend.history()
        idle = 0
        while True:
            before = _steps_saved(run_directory)
            done, taken = self._attempt(context, launch, run_directory, clocks)
            if taken is None:
                return done
            ended.append(taken)
            saved = _steps_saved(run_directory)
            idle = 0 if saved > before else idle + 1
            follows = self._follows(launch, ended, idle=idle, saved=saved)
            if follows is None:
                context.log.warning(f"The run is skipped: {taken.reason}.")
                return done
            context.log.warning(follows)
            if _has_saved(run_directory, launch.attempt):  # else the next begins where this one did
                launch = launch.model_copy(update={"fresh_data": False, "redistribute": False})
            launch = launch.model_copy(update={"attempt": launch.attempt + 1})
            clocks.begin_again()

    def _follows(
        self, launch: Launch, ended: Sequence[Ended], *, idle: int, saved: int
    ) -> str | None:
        """What comes after an attempt that lost its place, in words; nothing if it is skipped."""
        given = answer(launch.spec.purpose, ended)
        if given.action == "end":
            raise RunFailed(given.words)
        if given.action == "resume" and idle == IDLE_ATTEMPTS:
            raise RunFailed(
                f"The run lost its place {IDLE_ATTEMPTS} times with no new checkpoint between. "
                f"It is given up at step {saved}. `factory resume {launch.run_id}` goes on "
                f"when there is a place where it may stay for longer. {given.words}"
            )
        where = f"That is of step {saved}." if saved else "There is none: it begins again."
        words = f"{given.words} {where}" if given.action == "resume" else given.words
        return None if given.action == "skip" else words

    def _attempt(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        launch: Launch,
        run_directory: RunDirectory,
        clocks: Clocks,
    ) -> tuple[dg.PipesClientCompletedInvocation, Ended | None]:
        """One attempt, to its end, and how its place was lost if it was."""
        reader = NamespaceMessageReader(
            run_directory,
            context.log,
            attempt=launch.attempt,
            root=self._backend.root,
            before=self._backend.shown(launch.attempt),
        )
        cluster = self._backend.start(launch, run_directory)
        grace = self._grace_seconds
        if grace is None:
            grace = launch.grace_seconds + CLOSING_SECONDS
        try:
            with dg.open_pipes_session(
                context=context,
                context_injector=dg.PipesEnvContextInjector(),
                message_reader=reader,
                extras={"launch": launch.model_dump(mode="json")},
            ) as session:
                following = _Following(context, launch, cluster, reader)
                try:
                    cluster.submit(session.get_bootstrap_env_vars())
                    following.to_the_end(self._poll_seconds, clocks)
                except DagsterExecutionInterruptedError:
                    if self._goes_on(context):
                        cluster.leave()
                    raise
                finally:
                    stop(cluster, grace)
                    following.last_words()
                taken = following.taken
                if taken is None:
                    following.judge()
        finally:
            stop(cluster, 0.0)
        done = dg.PipesClientCompletedInvocation(session, metadata=dict(cluster.facts()))
        return done, Ended(launch.attempt, taken, following.reason) if taken else None

    def _goes_on(self, context: dg.OpExecutionContext | dg.AssetExecutionContext) -> bool:
        """Whether this process is told to end, and its run is not.

        Where a service runs the factory, its processes are moved: another takes the run up. On a
        laptop who interrupts a command means the run.
        """
        return self._settings.deployment != "laptop" and not _is_cancelled(context)


class _Following:
    """One run as it is followed: what was shown, and which clock runs."""

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
        """How the run's place was lost, if it was."""
        return self._state.taken

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
        if _is_cancelled(self._context):
            self._context.log.info("cancelled: stopping the run")
            raise DagsterExecutionInterruptedError


def _is_cancelled(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> bool:
    run = context.instance.get_run_by_id(context.run_id)
    return run is not None and run.status in _CANCELLED


def _steps_saved(run: RunDirectory) -> int:
    """The step of the newest complete checkpoint; 0 where there is none."""
    return max((checkpoint.step for checkpoint in complete_checkpoints(run)), default=0)


def _has_saved(run: RunDirectory, attempt: int) -> bool:
    return any(checkpoint.marker.attempt == attempt for checkpoint in complete_checkpoints(run))


def _local(settings: Settings) -> Backend:
    from factory.control.local import LocalBackend

    return LocalBackend(settings)
