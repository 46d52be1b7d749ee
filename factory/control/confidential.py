"""What a step on private data says, kept inside the private tree.

Dagster's storage and compute logs are readable by people who may not read private data. Anything
that user code prints, logs or raises may hold a row, so none of it leaves: output goes to a file in
the run's private directory, and an error is reported by its type and the place of that file.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO

from factory.errors import FactoryError, StepError, is_interruption
from factory.keys import Key
from factory.namespace import Namespace

type Progress = Callable[[str], None]


def in_confidence[T](
    work: Callable[[Progress], T], *, key: Key, namespace: Namespace, run_id: str
) -> T:
    """Do work on a private key; what it says goes to a file that only its readers can open.

    Raises:
        StepError: the work raised; named by type, with what our own errors let be told outside.
    """
    folder = namespace.open_run("private", run_id).directory("steps")
    log = folder / f"{'__'.join(key.parts)}.log"
    failure = told = ""
    interruption: type[BaseException] | None = None
    with _output_to(log) as file:
        try:
            return work(lambda message: print(message, file=file, flush=True))
        except BaseException as error:
            traceback.print_exc(file=file)
            failure = type(error).__name__
            interruption = type(error) if is_interruption(error) else None
            told = error.outside if isinstance(error, FactoryError) else ""
    # Raised outside of `except`, so that the first error does not travel as its context, nor what
    # was being handled when an interruption came.
    if interruption is not None:
        raise interruption
    what = f"{failure}. {told}".strip()
    raise StepError(f"{key}: {what} What it says may hold private data, so it is only in {log}.")


@contextlib.contextmanager
def _output_to(log: Path) -> Generator[IO[str]]:
    """Send everything written to standard output and error, by subprocesses too, to a file."""
    with log.open("a", encoding="utf-8", buffering=1) as file, contextlib.ExitStack() as stack:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor in (1, 2):
            saved = os.dup(descriptor)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, descriptor)
            os.dup2(file.fileno(), descriptor)
        stack.enter_context(contextlib.redirect_stdout(file))
        stack.enter_context(contextlib.redirect_stderr(file))
        yield file
