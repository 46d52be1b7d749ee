"""One run's Ray cluster on this machine, and the driver beside it.

The driver starts together with the cluster, so that its imports and Ray's start overlap; it waits
for the address that it was given. That is why there is no dashboard: the driver is a process of
ours, and needs no job server. Every process and file of a run belongs to its session (`sessions`).
The cluster itself is made in `head`.
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from factory.control import head
from factory.control.backend import State
from factory.control.logs import FileSource
from factory.control.processes import MARKER, signal_group
from factory.control.sessions import Session, Sessions
from factory.control.verdict import PREEMPTED, PREEMPTED_WORDS, describe_exit
from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.settings import Settings, inherited_environment

ADDRESS = "127.0.0.2"
"""Ray replaces 127.0.0.1 by the address of a network card, which changes when a laptop moves."""

OBJECT_STORE_BYTES = 200 * 2**20
"""Training passes nothing through Ray's object store."""

KEPT_LOG_BYTES = 2**16
_NOT_INHERITED = ("RAY_ADDRESS", "RAY_TMPDIR", "RAY_NAMESPACE", "RAY_AUTH_TOKEN_PATH")


class LocalCluster:
    """One run's Ray cluster and driver on this machine."""

    def __init__(
        self,
        *,
        settings: Settings,
        sessions: Sessions,
        session: Session,
        run_directory: RunDirectory,
        driver: tuple[str, ...],
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._session = session
        self._run_directory = run_directory
        self._logs = run_directory.directory("logs")
        self._command = driver
        self._log_start = _size(self._logs / "driver.log")
        self._token = secrets.token_urlsafe(32)
        self._held = _hold_port()
        self._head: subprocess.Popen[bytes] | None = None
        self._driver: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.taken_up = False
        """It ends with the process that made it."""

    def begin(self, *, num_cpus: int, num_gpus: int) -> None:
        """Start the process that holds the cluster."""
        request = {
            "state": str(self._settings.state),
            "session": self._session.id,
            "owner": os.getpid(),
            "directory": str(self._session.directory),
            "address": ADDRESS,
            "port": self._port,
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "object_store_bytes": OBJECT_STORE_BYTES,
        }
        command = [sys.executable, "-m", head.__name__, json.dumps(request)]
        (self._session.directory / "tmp").mkdir()
        self._head = self._spawn(command, {}, log="ray.log")

    def submit(self, environment: Mapping[str, str]) -> None:
        """Start the driver."""
        more = {"RAY_ADDRESS": f"{ADDRESS}:{self._port}", **environment}
        self._driver = self._spawn(list(self._command), more, log="driver.log")

    def poll(self) -> State:
        """Where the run is, by its two processes."""
        driver = self._driver.poll() if self._driver else None
        head_code = self._head.poll() if self._head else None
        if head_code is not None and driver != 0:
            return State(phase="failed", reason=self._lost(head_code), exit_code=driver)
        if driver == PREEMPTED:
            return State(phase="evicted", reason=PREEMPTED_WORDS, exit_code=driver)
        if driver is not None:
            return State(phase="failed" if driver else "succeeded", exit_code=driver)
        if not self._ready.exists():
            return State(phase="starting", reason="a Ray cluster of the run's own is starting")
        return State(phase="running", reason=f"the Ray cluster is up at {ADDRESS}:{self._port}")

    @property
    def log(self) -> Path:
        """The file with the driver's output."""
        return self._logs / "driver.log"

    def read_log(self) -> FileSource:
        """The driver's output."""
        return FileSource(self.log, self._log_start)

    def facts(self) -> Mapping[str, str]:
        """What the run's page shows about the cluster."""
        return {"cluster": "local", "ray session": self._session.id, "host": os.uname().nodename}

    def leave(self) -> None:
        """Nothing goes on without this process."""
        self.stop(0.0)

    def stop(self, grace_seconds: float) -> None:
        """End driver and cluster, prove it, and remove the session's files.

        Raises:
            RunFailed: a process or a file is still there.
        """
        if self._stopped:
            return
        self._end_driver(grace_seconds)
        if self._driver is None or self._driver.returncode != 0:
            self._keep_ray_logs()
        left = self._sessions.close(self._session)
        for process in (self._driver, self._head):
            if process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):  # then it is in `left`
                    process.wait(1.0)
        self._held.close()
        if left or self._session.directory.exists():
            what = ", ".join(str(process) for process in left) or str(self._session.directory)
            raise RunFailed(
                f"{self._session} was stopped, but this is left: {what}. "
                "The next run tries again; until then it holds memory."
            )
        self._stopped = True

    @property
    def _port(self) -> int:
        return int(self._held.getsockname()[1])

    @property
    def _ready(self) -> Path:
        return self._session.directory / head.READY

    def _spawn(
        self, command: list[str], environment: Mapping[str, str], *, log: str
    ) -> subprocess.Popen[bytes]:
        try:
            with (self._logs / log).open("ab") as output:
                return subprocess.Popen(  # noqa: S603  our own commands
                    command,
                    env={**self._environment(), **environment},
                    cwd=self._session.directory / "tmp",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise RunFailed(f"{command[0]} cannot be started for the run: {error}") from error

    def _environment(self) -> dict[str, str]:
        return {
            **inherited_environment(_NOT_INHERITED),
            **self._settings.environment(),
            MARKER: self._session.id,
            "TMPDIR": str(self._session.directory / "tmp"),  # removed with the session
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",  # a crash in C leaves a trace in the log
            "RAY_AUTH_MODE": "token",  # Ray listens on every address of this machine
            "RAY_AUTH_TOKEN": self._token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEDUP_LOGS": "0",  # every line of every worker
            "RAY_COLOR_PREFIX": "0",
        }

    def _lost(self, code: int) -> str:
        when = "ended while the run was going on" if self._ready.exists() else "could not start"
        lines = FileSource(self._logs / "ray.log").read(0, KEPT_LOG_BYTES).decode(errors="replace")
        last = lines.strip().splitlines()[-1:] or ["it printed nothing"]
        return (
            f"Ray {when}: its process {describe_exit(code)}, saying: {last[0]}. "
            f"More is in {self._logs / 'ray.log'} and {self._logs / 'ray'}"
        )

    def _end_driver(self, grace_seconds: float) -> None:
        driver = self._driver
        if driver is None or driver.poll() is not None:
            return
        signal_group(driver.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while driver.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def _keep_ray_logs(self) -> None:
        """The end of each of Ray's logs, into the run's directory: the originals are removed."""
        folder = self._session.directory / "ray" / "session_latest" / "logs"
        kept = self._run_directory.directory("logs/ray")
        for path in sorted(folder.glob("*.*")):
            size = _size(path)
            if size:
                start = max(0, size - KEPT_LOG_BYTES)
                (kept / path.name).write_bytes(FileSource(path, start).read(0, KEPT_LOG_BYTES))


def _hold_port() -> socket.socket:
    """Hold a free port for a server that this process starts.

    Bound by us it is given to nobody else; allowing its reuse afterwards lets Ray, which asks for
    that, listen on it. So there is no moment in which another run could take it.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.bind((ADDRESS, 0))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return held


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
