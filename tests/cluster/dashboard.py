"""A Ray dashboard without Ray, for clusters whose pods are played: the test says how jobs fare.

The API server passes requests on to pods, never to the loopback address. So a dashboard listens on
this machine's own address, and the test gives that address to the head's pod.
"""

import contextlib
import http.server
import json
import socket
import threading
import time
import urllib.parse
from collections.abc import Generator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import override

from tests.cluster.api import Object

_JOBS = "/api/jobs/"


@dataclass
class Job:
    """A job as the dashboard tells of it; the test changes it."""

    submission_id: str
    entrypoint: str
    status: str = "PENDING"
    message: str = ""
    logs: str = ""
    start_time: int = field(default_factory=lambda: int(time.time() * 1000))

    def as_answer(self) -> Object:
        """What the dashboard says of it."""
        return {
            "type": "SUBMISSION",
            "submission_id": self.submission_id,
            "entrypoint": self.entrypoint,
            "status": self.status,
            "message": self.message,
            "start_time": self.start_time,
        }


class Dashboard:
    """What was submitted and stopped, and what every request gets while the dashboard is ill."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.stopped: list[str] = []
        self.illness: HTTPStatus | None = None
        self._server = http.server.ThreadingHTTPServer((own_address(), 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """The address that the head's pod has to have."""
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The port that the head's container has to call `dashboard`."""
        return self._server.server_port

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering: connections are refused."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: Object) -> tuple[HTTPStatus, Object]:
        """The answer to a request, as Ray's job server gives it."""
        if self.illness is not None:
            return self.illness, {"error": self.illness.phrase}
        job_id, _, action = path.removeprefix(_JOBS).partition("/")
        if (method, job_id) == ("POST", ""):
            return self._submit(body)
        job = self.jobs.get(job_id)
        if job is None:
            return HTTPStatus.NOT_FOUND, {"error": f"Job {job_id} does not exist"}
        if (method, action) == ("POST", "stop"):
            self.stopped.append(job_id)
            job.status = "STOPPED"
            return HTTPStatus.OK, {"stopped": True}
        if method == "DELETE":
            del self.jobs[job_id]
            return HTTPStatus.OK, {"deleted": True}
        return HTTPStatus.OK, {"logs": job.logs} if action == "logs" else job.as_answer()

    def _submit(self, body: Object) -> tuple[HTTPStatus, Object]:
        job_id = body["submission_id"]
        if job_id in self.jobs:
            return HTTPStatus.BAD_REQUEST, {"error": f"Job {job_id} already exists"}
        self.jobs[job_id] = Job(job_id, body["entrypoint"])
        return HTTPStatus.OK, {"submission_id": job_id, "job_id": job_id}


@contextlib.contextmanager
def dashboard() -> Generator[Dashboard]:
    """A dashboard that answers until the end."""
    made = Dashboard()
    made.start()
    try:
        yield made
    finally:
        made.stop()


def own_address() -> str:
    """The address of this machine by which others know it; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("203.0.113.1", 9))  # an address for documentation, which nobody has
        return str(probe.getsockname()[0])


def _handler(owner: Dashboard) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            status, answer = owner.answer(self.command, path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _respond  # noqa: N815  the names that the server calls

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Requests are not told to the test's output."""

    return Handler
