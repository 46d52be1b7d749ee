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

import contextlib
from collections.abc import Generator, Sequence

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from factory.control.answers import Ended, answer
from factory.control.backend import Backend, RunCluster
from factory.control.clocks import CLOSING_SECONDS, Clocks, limits_of
from factory.control.follower import Follower, is_cancelled
from factory.control.messages import NamespaceMessageReader
from factory.control.next_attempt import next_attempt
from factory.control.uninterrupted import stop
from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.settings import Settings
from factory.spec import Launch

type Context = dg.OpExecutionContext | dg.AssetExecutionContext

IDLE_ATTEMPTS = 3
"""Attempts that end without a new checkpoint, one after the other, before the run is given up."""


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
        context: Context,
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
            launch = next_attempt(launch, run_directory)
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
        context: Context,
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
            with contextlib.ExitStack() as sessions:
                with self._left_where_it_goes_on(context, cluster):
                    session = sessions.enter_context(
                        dg.open_pipes_session(
                            context=context,
                            context_injector=dg.PipesEnvContextInjector(),
                            message_reader=reader,
                            extras={"launch": launch.model_dump(mode="json")},
                        )
                    )
                    following = Follower(context, launch, cluster, reader)
                try:
                    with self._left_where_it_goes_on(context, cluster):
                        cluster.submit(session.get_bootstrap_env_vars())
                        following.to_the_end(self._poll_seconds, clocks)
                finally:
                    try:
                        _stop(context, cluster, grace)
                    finally:
                        following.last_words()
                taken = following.taken
                if taken is None:
                    following.judge()
        finally:
            _stop(context, cluster, 0.0)
        done = dg.PipesClientCompletedInvocation(session, metadata=dict(cluster.facts()))
        return done, Ended(launch.attempt, taken, following.reason) if taken else None

    def _goes_on(self, context: Context) -> bool:
        """Whether this process is told to end, and its run is not.

        Where a service runs the factory, its processes are moved: another takes the run up. On a
        laptop who interrupts a command means the run.
        """
        return self._settings.deployment != "laptop" and not is_cancelled(context)

    @contextlib.contextmanager
    def _left_where_it_goes_on(self, context: Context, cluster: RunCluster) -> Generator[None]:
        """Let go of it where this process ends, and nothing says that its run does.

        A run that did well without this process is not ended because it cannot be taken up here.
        """
        try:
            yield
        except RunFailed:
            raise
        except Exception:
            if cluster.taken_up and not _is_to_end(context):
                cluster.leave()
            raise
        except DagsterExecutionInterruptedError:
            if self._goes_on(context):
                cluster.leave()
            raise


def _stop(context: Context, cluster: RunCluster, grace_seconds: float) -> None:
    """Stop it. What is left of it takes nothing from what came of the run: it is swept later."""
    try:
        stop(cluster, grace_seconds)
    except RunFailed as left:
        context.log.warning(str(left))
    except (KeyboardInterrupt, DagsterExecutionInterruptedError) as interrupt:
        if isinstance(interrupt.__cause__, RunFailed):
            context.log.warning(str(interrupt.__cause__))
        raise


def _is_to_end(context: Context) -> bool:
    """Whether somebody has cancelled the run; who cannot be asked has not said so."""
    try:
        return is_cancelled(context)
    except Exception:
        return False


def _steps_saved(run: RunDirectory) -> int:
    """The step of the newest complete checkpoint; 0 where there is none."""
    return max((checkpoint.step for checkpoint in complete_checkpoints(run)), default=0)


def _local(settings: Settings) -> Backend:
    from factory.control.local import LocalBackend

    return LocalBackend(settings)
