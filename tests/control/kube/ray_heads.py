"""A real Ray head with a dashboard and token authentication, as in a pod, on this machine."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from factory.control.kube.api import connect
from factory.control.kube.dashboard import Dashboard
from tests.control.a_cluster import a_cluster

START_SECONDS = 300
TRIES = 3


@dataclass
class RayHead:
    """Where it listens, and its files."""

    port: int
    token: str
    folder: Path
    session: int = 0
    """The Unix session of all its processes."""

    def kill(self) -> None:
        """End every process of it, as a node does that dies."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == self.session:
                    process.send_signal(signal.SIGKILL)

    def submit(self, job_id: str, entrypoint: str) -> None:
        """Hand a driver to its job server."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = json.dumps({"entrypoint": entrypoint, "submission_id": job_id})
        with contextlib.closing(link):
            link.request("POST", "/api/jobs/", body, headers)
            reply = link.getresponse()
            assert reply.status == http.client.OK, reply.read()

    def log(self, job_id: str) -> Path:
        """The driver's log, where Ray keeps it."""
        return self.folder / "session_latest" / "logs" / f"job-driver-{job_id}.log"

    def dashboard(self, port: int | None = None) -> Dashboard:
        """A client of it; through another port if something stands between."""
        template = f"http://127.0.0.1:{port or self.port}/{{cluster}}"
        cluster = a_cluster(ca=None, dashboard={"route": "template", "template": template})
        return Dashboard(connect(cluster), cluster, "", self.token)  # at the root of its port


@contextlib.contextmanager
def ray_head() -> Generator[RayHead]:
    """On free ports, so that it disturbs nobody, and ended with everything that it started."""
    for _ in range(TRIES):
        head, code = _start()
        if code == 0:
            break
        _end(head)
    else:
        raise RuntimeError(f"no Ray head could be started in {TRIES} tries; the last gave {code}")
    try:
        yield head
    finally:
        _end(head)


def _start() -> tuple[RayHead, int]:
    """A head, and the exit code of `ray start`, which waits for a while that cannot be changed."""
    folder = Path(tempfile.mkdtemp(prefix="head-", dir="/tmp"))
    gcs, dashboard, client = _free_ports(3)
    head = RayHead(dashboard, os.urandom(16).hex(), folder)
    arguments = {
        "port": gcs,
        "temp-dir": folder,
        "include-dashboard": "true",
        "dashboard-port": dashboard,
        "dashboard-agent-listen-port": 0,
        "ray-client-server-port": client,
        "min-worker-port": 0,
        "max-worker-port": 0,
        "num-cpus": 1,
        "object-store-memory": 100 << 20,
    }
    command = [Path(sys.executable).with_name("ray"), "start", "--head", "--disable-usage-stats"]
    started = subprocess.Popen(
        [*command, *(f"--{name}={value}" for name, value in arguments.items())],
        env={**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": head.token},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    head.session = started.pid
    return head, started.wait(START_SECONDS)


def _end(head: RayHead) -> None:
    head.kill()
    shutil.rmtree(head.folder, ignore_errors=True)


@dataclass
class Cutting:
    """Something between that cuts connections off, after so many bytes of an answer each."""

    to: int
    cuts: list[int] = field(default_factory=list[int])
    made: int = 0
    """Cuts made so far."""
    port: int = 0

    def serve(self, listening: socket.socket) -> None:
        """Pass connections on until the listening socket is closed."""
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._between, args=(client,), daemon=True).start()

    def _between(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.to)) as server:
            asking = threading.Thread(target=self._pass, args=(client, server, False))
            asking.start()
            self._pass(server, client, True)
            asking.join()

    def _pass(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                if answers and self.cuts and passed + len(data) > self.cuts[0]:
                    other.sendall(data[: self.cuts.pop(0) - passed])
                    self.made += 1
                    break
                other.sendall(data)
                passed += len(data)
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def cutting(to: int, cuts: list[int]) -> Generator[Cutting]:
    """Stand between until the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Cutting(to, cuts, port=listening.getsockname()[1])
        threading.Thread(target=made.serve, args=(listening,), daemon=True).start()
        yield made
        listening.shutdown(socket.SHUT_RDWR)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
