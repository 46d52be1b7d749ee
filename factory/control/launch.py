"""Start a Dagster run from the command line and follow it to its end: a job, a resume, or assets.

The run executes in a process of its own, `launched`, as it does when the UI starts it: Dagster
takes over standard output, loggers and signals of the process that runs it. This side stays light,
shows progress, and passes an interrupt on, once, so that the run can tear down what it started. If
this side dies, the other notices and ends its run.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import IO, Literal

from pydantic import BaseModel, Field

from factory import errors
from factory.data.engines import LOCAL
from factory.errors import FactoryError, RunFailed, SpecError
from factory.settings import CHECKOUT, Settings, inherited_environment

type Progress = Callable[[str], None]

LOG_TAIL_CHARACTERS = 2_000


class LaunchResult(BaseModel, frozen=True, extra="forbid"):
    """How a run ended."""

    run_id: str
    success: bool
    failures: list[str]
    """For each step that failed: its name, a colon, and what happened."""


class Request(BaseModel, frozen=True, extra="forbid"):
    """What the other process is asked for."""

    kind: Literal["job", "resume", "follow", "assets"]
    job: str = ""
    run_id: str = ""
    fresh_data: bool = False
    redistribute: bool = False
    sets: dict[str, str] = Field(default_factory=dict)
    keys: list[str] = Field(default_factory=list)
    limit: int | None = None
    engine: str = LOCAL


class Message(BaseModel, frozen=True, extra="forbid"):
    """One line from the other process."""

    progress: str | None = None
    result: LaunchResult | None = None
    error: tuple[str, str] | None = None
    """Class of a `FactoryError` and its text."""


def launch(
    job: str,
    sets: Mapping[str, str],
    *,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> LaunchResult:
    """Run a training job with some fields of its spec changed.

    Args:
        job: name of a job in `definitions/jobs`.
        sets: new values by field; `overrides.train.train_iters` sets one field of the recipe.
        settings: where things are; the environment's if left out.
        progress: called with one line at a time.

    Raises:
        SpecError: an unknown job, field or override, or a value out of range; nothing was started.
    """
    _refuse_unknown_job(job)
    return _run(Request(kind="job", job=job, sets=dict(sets)), settings, progress)


def resume(
    run_id: str,
    sets: Mapping[str, str],
    *,
    fresh_data: bool = False,
    redistribute: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> LaunchResult:
    """Go on with a run that ended before it was done, from its last complete checkpoint.

    Args:
        run_id: of the run that ended.
        sets: fields of its spec that are to be others now: `cluster`, limits.
        fresh_data: the weights of the checkpoint, and the data from their beginning.
        redistribute: the data on another number of data-parallel ranks.
        settings: where things are; the environment's if left out.
        progress: called with one line at a time.

    Raises:
        SpecError: no such run, one that is still going on, an unknown field; nothing was started.
    """
    request = Request(
        kind="resume",
        run_id=run_id,
        sets=dict(sets),
        fresh_data=fresh_data,
        redistribute=redistribute,
    )
    return _run(request, settings, progress)


def follow(
    run_id: str, *, settings: Settings | None = None, progress: Progress | None = None
) -> LaunchResult:
    """Take up a run that goes on on its cluster although nobody follows it any more.

    Raises:
        SpecError: no such run, or it does not go on; nothing was started.
    """
    return _run(Request(kind="follow", run_id=run_id), settings, progress)


def materialize(
    keys: Sequence[str],
    limit: int | None = None,
    *,
    engine: str = LOCAL,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> LaunchResult:
    """Materialize datasets or single assets by key; what has not changed is reused.

    `engine` does the work, and does not change what is made (`factory.data.engines`).

    Raises:
        SpecError: a key is neither a dataset nor an asset of one; nothing was started.
    """
    request = Request(kind="assets", keys=list(keys), limit=limit, engine=engine)
    return _run(request, settings, progress)


def _refuse_unknown_job(job: str) -> None:
    """At once; Dagster, which looks again, takes seconds to load."""
    from factory import discovery
    from factory.control.nearest import naming

    known = discovery.job_names()
    if known is not None and job not in known:
        raise SpecError(f"No job {job!r} in definitions/jobs. {naming(job, known)}")


def _run(request: Request, settings: Settings | None, progress: Progress | None) -> LaunchResult:
    chosen = settings or Settings.from_environment()
    environment = {**inherited_environment(), **chosen.environment(), "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "factory.control.launched"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=CHECKOUT,
            env=environment,
            start_new_session=True,
        )
        with _ending_with(child):
            result = _follow(child, request, progress or _silent)
        if result is None:
            raise RunFailed(
                f"The process of the run ended with code {child.returncode} and no result.\n"
                f"Its last lines:\n{_tail(log)}"
            )
        return result


def _follow(
    child: "subprocess.Popen[str]", request: Request, progress: Progress
) -> LaunchResult | None:
    stdin, stdout = child.stdin, child.stdout
    if stdin is None or stdout is None:
        return None
    with contextlib.suppress(BrokenPipeError):
        stdin.write(request.model_dump_json() + "\n")
        stdin.flush()
    result = None
    for line in stdout:
        message = Message.model_validate(json.loads(line))
        if message.progress is not None:
            progress(message.progress)
        if message.error is not None:
            raise _error(*message.error)
        result = message.result or result
    child.wait()
    return result


@contextlib.contextmanager
def _ending_with(child: "subprocess.Popen[str]") -> Generator[None]:
    """Wait for the other process whatever happens; an interrupt is passed on, and waited for."""
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGINT)
        raise
    finally:
        if child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _error(kind: str, text: str) -> FactoryError:
    found = getattr(errors, kind, FactoryError)
    return found(text)


def _tail(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-LOG_TAIL_CHARACTERS:]


def _silent(_: str) -> None:
    return None
