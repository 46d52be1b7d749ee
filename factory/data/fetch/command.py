"""Running the programs that fetch: without prompts, with a sign of life, with their last words."""

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from factory.data.progress import SECONDS_BETWEEN, Say
from factory.settings import inherited_environment


def run(
    command: Sequence[str | Path], what: str, say: Say, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a program to its end; returns its exit status and what it wrote to standard error."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603  a list of arguments, none from a shell
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=inherited_environment() | dict(environment or {}),
        )
        try:
            while True:
                try:
                    status = process.wait(SECONDS_BETWEEN)
                    break
                except subprocess.TimeoutExpired:
                    say(f"{what}: {time.monotonic() - started:.0f} s")
        except BaseException:
            process.kill()
            process.wait()
            raise
        errors.seek(0)
        return status, errors.read().decode(errors="replace").strip()
