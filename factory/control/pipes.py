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

import sys
import time

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from factory.control.backend import Backend, RunCluster, State
from factory.control.logs import Line, LineReader
from factory.control.messages import NamespaceMessageReader
from factory.control.uninterrupted import stop
from factory.control.verdict import PREEMPTED, judge
from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.settings import Settings
from factory.spec import Launch, RunSpec

CANCEL_POLL_SECONDS = 2.0
CLOSING_SECONDS = 5.0
"""Beyond the grace of its cluster: what a driver gets to close its messages once it has saved."""

LATE_CLOSE_SECONDS = 10.0
"""A driver that ended well has closed; a file server may show it a little later."""

IDLE_ATTEMPTS = 3
"""Attempts that end without a new checkpoint, one after the other, before the run is given up."""

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
        idle = 0
        clocks = _Clocks(launch.spec)
        while True:
            before = _steps_saved(run_directory)
            done = self._attempt(context, launch, run_directory, clocks)
            if done is not None:
                return done
            saved = _steps_saved(run_directory)
            idle = 0 if saved > before else idle + 1
            if idle == IDLE_ATTEMPTS:
                raise RunFailed(
                    f"The run was preempted {IDLE_ATTEMPTS} times with no new checkpoint between. "
                    f"It is given up at step {saved}. `factory resume {launch.run_id}` goes on "
                    "when there is a place where it may stay for longer."
                )
            attempt = launch.attempt + 1
            context.log.warning(
                f"The run was preempted (exit code {PREEMPTED}). Attempt {attempt} goes on from "
                + (f"the checkpoint of step {saved}." if saved else "the beginning.")
            )
            if _has_saved(run_directory, launch.attempt):  # else the next begins where this one did
                launch = launch.model_copy(update={"fresh_data": False, "redistribute": False})
            launch = launch.model_copy(update={"attempt": attempt})
            clocks.begin_again()

    def _attempt(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        launch: Launch,
        run_directory: RunDirectory,
        clocks: "_Clocks",
    ) -> dg.PipesClientCompletedInvocation | None:
        """One attempt; nothing if it was preempted, so that another has to follow."""
        reader = NamespaceMessageReader(run_directory, context.log, attempt=launch.attempt)
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
                following = _Following(context, launch, run_directory, cluster, reader)
                try:
                    cluster.submit(session.get_bootstrap_env_vars())
                    following.to_the_end(self._poll_seconds, clocks)
                finally:
                    stop(cluster, grace)
                    following.last_words()
                if following.preempted:
                    return None
                following.judge()
        finally:
            stop(cluster, 0.0)
        return dg.PipesClientCompletedInvocation(session, metadata=dict(cluster.facts()))


class _Following:
    """One run as it is followed: what was shown, and which clock runs."""

    def __init__(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        launch: Launch,
        run_directory: RunDirectory,
        cluster: RunCluster,
        reader: NamespaceMessageReader,
    ) -> None:
        self._context = context
        self._launch = launch
        self._log = run_directory.path / "logs" / "driver.log"
        self._cluster = cluster
        self._reader = reader
        self._lines = LineReader(cluster.read_log())
        self._cancel_looked_at = time.monotonic()
        self._state = State(phase="queued")
        self._said = ""

    def to_the_end(self, poll_seconds: float, clocks: "_Clocks") -> None:
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
            if self._state.ended:
                return
            clocks.check(self._state)
            self._check_cancelled()
            if not busy:
                time.sleep(poll_seconds)

    def last_words(self) -> None:
        """Show what the run wrote up to its end."""
        for lines in self._lines.finish():
            self._show(lines)
        succeeded = self._state.phase == "succeeded"
        self._reader.finish(LATE_CLOSE_SECONDS if succeeded and self._reader.opened else 0.0)

    @property
    def preempted(self) -> bool:
        """Whether the driver was told to stop by somebody else, and asks to be resumed."""
        return self._state.exit_code == PREEMPTED

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
        if state.reason and state.reason != self._said and not state.ended:
            self._said = state.reason
            self._context.log.info(state.reason)

    def _show(self, lines: list[Line]) -> bool:
        if lines and self._launch.classification == "public":
            sys.stdout.write(
                "".join(f"{line.text}\n" if line.ends else line.text for line in lines)
            )
            sys.stdout.flush()
        return bool(lines)

    def _check_cancelled(self) -> None:
        """A run that was not started by a launcher gets no signal when it is cancelled."""
        if time.monotonic() - self._cancel_looked_at < CANCEL_POLL_SECONDS:
            return
        self._cancel_looked_at = time.monotonic()
        run = self._context.instance.get_run_by_id(self._context.run_id)
        if run is not None and run.status in _CANCELLED:
            self._context.log.info("cancelled: stopping the run")
            raise DagsterExecutionInterruptedError


class _Clocks:
    """Time waiting, of each attempt, and time running, of all, each against its own limit."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._began = time.monotonic()
        self._running_since: float | None = None
        self._ran = 0.0

    def begin_again(self) -> None:
        """Another attempt waits for its cluster."""
        self._began = time.monotonic()
        if self._running_since is not None:
            self._ran += self._began - self._running_since
            self._running_since = None

    def check(self, state: State) -> None:
        """Raise `RunFailed` once a limit has passed."""
        now = time.monotonic()
        if state.waits:
            hours = (now - self._began) / 3600
            if hours > self._spec.queue_limit_hours:
                raise RunFailed(
                    f"The run waited longer than queue_limit_hours = "
                    f"{self._spec.queue_limit_hours:g} for its cluster ({state.reason}). "
                    "It was stopped; raise the limit or choose another cluster."
                )
            return
        if self._running_since is None:
            self._running_since = now
        ran = self._ran + now - self._running_since
        if ran / 3600 > self._spec.run_limit_hours:
            raise RunFailed(
                f"The run took longer than run_limit_hours = {self._spec.run_limit_hours:g} and "
                "was stopped. Its checkpoints are kept; raise the limit to let it go on for longer."
            )


def _steps_saved(run: RunDirectory) -> int:
    """The step of the newest complete checkpoint; 0 where there is none."""
    return max((checkpoint.step for checkpoint in complete_checkpoints(run)), default=0)


def _has_saved(run: RunDirectory, attempt: int) -> bool:
    return any(checkpoint.marker.attempt == attempt for checkpoint in complete_checkpoints(run))


def _local(settings: Settings) -> Backend:
    from factory.control.local import LocalBackend

    return LocalBackend(settings)
