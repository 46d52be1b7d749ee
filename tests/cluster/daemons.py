"""One long-running program of a cluster: started, killed, started again, watched."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factory.control.processes import MARKER

_TAIL_LINES = 20


class DaemonDied(Exception):
    """A program of the cluster ended or never became ready."""


@dataclass
class Daemon:
    """A program, its arguments and its log. Whoever sweeps the session finds it by the marker."""

    name: str
    command: Sequence[str]
    log: Path
    session_id: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it must not run."""
        if self.runs():
            raise RuntimeError(f"{self.name} runs already")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.log.parent),
            MARKER: self.session_id,
            **self.environment,
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # an interrupt at the terminal is the harness's to handle
            )

    def runs(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The pid that it has or had."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal, for instance SIGSTOP to make it hang."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Kill it and start it with the same arguments."""
        self.kill()
        self.start()

    def wait_until(self, ready: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait until it is ready.

        Raises:
            DaemonDied: it ended, or was not ready in time; with the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.runs():
                raise DaemonDied(f"{self.name} ended: {self._tail()}")
            if time.monotonic() > deadline:
                raise DaemonDied(f"{self.name} was not ready in {seconds:.0f} s: {self._tail()}")
            time.sleep(0.1)

    def _tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(["", *lines[-_TAIL_LINES:]])
