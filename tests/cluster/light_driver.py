"""A driver that only speaks, in the place of `factory.training` in an image of the tests.

It holds its attempt of the run as the real one does, asks every worker before each number, and says
the number as a line and as a message. The next attempt goes on after the last number that was said.
"""

import fcntl
import json
import os
import sys
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dagster_pipes import (
    PipesDefaultContextLoader,
    PipesEnvVarParamsLoader,
    open_dagster_pipes,
)

from factory.errors import FactoryError, RunFailed, Superseded
from factory.namespace import Namespace
from factory.namespace.attempts import Attempt
from factory.settings import Settings, ray_address
from factory.spec import Launch
from factory.training.driver import FAILED, PREEMPTED, Ending
from factory.training.messages import NamespaceMessageWriter
from factory.training.resume.watch import SUPERSEDED
from factory.training.waiting import Ended
from factory.training.workers import connect

NUMBERS, BEFORE = 24, 8
ASK_SECONDS = 0.5


def main() -> int:
    """Run the launch that Pipes carries; returns the exit code."""
    ending = Ending()
    ending.listen()
    launch, root = _launch(), Settings.from_environment().root
    attempt = Attempt(
        Namespace(root).open_run(launch.classification, launch.run_id), launch.attempt
    )
    name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    run = attempt.run.path
    try:
        attempt.claim()
        with _alone(run), (run / f"said-{name}").open("a", buffering=1) as said:
            writer = NamespaceMessageWriter(interval_seconds=0.0, check=attempt.check)
            with open_dagster_pipes(message_writer=writer) as pipes:
                connect(ray_address(), ending.check)
                ending.listen()
                workers = _workers(launch.spec.workers)
                for number in range(_next(run), NUMBERS):
                    _ask(workers, number, ending)
                    line = f"line {number} of {name}"
                    print(line, flush=True)  # noqa: T201  it is what the driver is for
                    said.write(f"{line}\n")
                    message = f"message {number} of {name}"
                    pipes.report_custom_message(
                        {"kind": "phase", "name": "said", "detail": message, "seconds": 0.0}
                    )
                    (run / "number").write_text(str(number))
                    while number == BEFORE and not (root / "public" / "go").exists():
                        _ask(workers, number, ending)
                        time.sleep(0.1)
    except Superseded:
        (run / f"fenced-{name}").touch()
        return SUPERSEDED
    except Ended:
        return PREEMPTED
    except FactoryError:
        return FAILED
    finally:
        (run / f"ended-{name}").touch()
    return 0


def _launch() -> Launch:
    params = PipesEnvVarParamsLoader().load_context_params()
    with PipesDefaultContextLoader().load_context(params) as context:
        given: Any = (context["extras"] or {})["launch"]
    return Launch.model_validate(json.loads(given) if isinstance(given, str) else given)


@contextmanager
def _alone(run: Path) -> Generator[None]:
    """While this driver lives; leaves a mark where another one does."""
    with (run / "alive").open("w") as alive:
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (run / "two-at-once").touch()
        yield


def _workers(count: int) -> list[Any]:
    """An actor on each; the head has no place for any."""
    import ray

    @ray.remote(num_cpus=0.5, scheduling_strategy="SPREAD")
    class Worker:
        def answer(self, number: int) -> int:
            return number

    return [Worker.remote() for _ in range(count)]


def _ask(workers: list[Any], number: int, ending: Ending) -> None:
    """Wait for the answer of every worker.

    Raises:
        RunFailed: one is lost.
        Ended: the driver was told to stop.
    """
    import ray
    from ray.exceptions import RayError

    asked: list[Any] = [one.answer.remote(number) for one in workers]
    done: list[Any] = []
    while len(done) < len(asked):
        ending.check()
        done, _ = ray.wait(asked, num_returns=len(asked), timeout=ASK_SECONDS)
    try:
        ray.get(asked)
    except RayError as lost:
        raise RunFailed(f"a worker is lost ({type(lost).__name__})") from None


def _next(run: Path) -> int:
    number = run / "number"
    return int(number.read_text() or -1) + 1 if number.exists() else 0


if __name__ == "__main__":
    sys.exit(main())
