"""A Ray dashboard without Ray, for clusters whose pods are played: the test says how jobs fare.

The API server passes requests on to pods, never to the loopback address. So a dashboard listens on
this machine's own address, and the test gives that address to the head's pod.
"""

import contextlib
import email.message
import http.server
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import override

from tests.cluster.api import Object
from tests.cluster.dashboard_log import ServedLog, serve

_JOBS = "/api/jobs/"
_LOGS = "/api/v0/logs/"
_BEFORE = re.compile(r"^.*?(?=/api/(?:jobs|v0)/)")
"""What leads to this dashboard: the API server's proxy, or the part of an address of its own."""


@dataclass
class Job:
    """A job as the dashboard tells of it; the test changes it."""

    submission_id: str
    entrypoint: str
    status: str = "PENDING"
    message: str = ""
    exit_code: int | None = None
    log: ServedLog = field(default_factory=ServedLog)
    node_id: str = "a" * 56
    """Of the node where its driver runs."""
    start_time: int = field(default_factory=lambda: int(time.time() * 1000))
    environment: dict[str, str] = field(default_factory=dict[str, str])
    """Variables of its runtime environment."""

    def as_answer(self) -> Object:
        """What the dashboard says of it."""
        return {
            "type": "SUBMISSION",
            "submission_id": self.submission_id,
            "entrypoint": self.entrypoint,
            "status": self.status,
            "message": self.message,
            "start_time": self.start_time,
            "driver_node_id": self.node_id or None,
            "driver_exit_code": self.exit_code,
        }


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is what a test wants."""


class Dashboard:
    """What was submitted and stopped, and what every request gets while the dashboard is ill."""

    def __init__(self, address: str = "", tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.jobs: dict[str, Job] = {}
        self.stopped: list[str] = []
        self.stopping: set[str] | None = None
        """Jobs that are told to stop, where somebody else ends them; without, they end at once."""
        self.illness: HTTPStatus | None = None
        self.token = ""
        """Ray's token; without one everybody may ask."""
        self.proxy_token = ""
        """Of the API server whose proxy this is too."""
        self.asked: list[email.message.Message] = []
        """The headers of every request."""
        self._server = _Server((address or own_address(), port), _handler(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

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
            if self.stopping is None:
                job.status = "STOPPED"
            else:
                self.stopping.add(job_id)
            return HTTPStatus.OK, {"stopped": True}
        if method == "DELETE":
            del self.jobs[job_id]
            return HTTPStatus.OK, {"deleted": True}
        return HTTPStatus.OK, job.as_answer()

    def log(self, asked: Mapping[str, str]) -> ServedLog | None:
        """The log that is meant, if the driver runs on the node that is asked."""
        for job in self.jobs.values():
            if (asked["node_id"], asked["filename"]) == (
                job.node_id,
                f"job-driver-{job.submission_id}.log",
            ):
                return job.log
        return None

    def lets(self, headers: email.message.Message) -> bool:
        """Whether Ray would answer: `Authorization` counts first, if no proxy has taken it."""
        shown = headers["Authorization"] or headers["X-Ray-Authorization"]
        if self.proxy_token:
            if headers["Authorization"] != f"Bearer {self.proxy_token}":
                return False
            shown = headers["X-Ray-Authorization"]
        return not self.token or shown == f"Bearer {self.token}"

    def _submit(self, body: Object) -> tuple[HTTPStatus, Object]:
        job_id = body["submission_id"]
        if job_id in self.jobs:
            return HTTPStatus.BAD_REQUEST, {"error": f"Job {job_id} already exists"}
        variables = (body.get("runtime_env") or {}).get("env_vars") or {}
        self.jobs[job_id] = Job(job_id, body["entrypoint"], environment=variables)
        return HTTPStatus.OK, {"submission_id": job_id, "job_id": job_id}


@contextlib.contextmanager
def dashboard(
    address: str = "", tls: ssl.SSLContext | None = None, port: int = 0
) -> Generator[Dashboard]:
    """A dashboard that answers until the end."""
    made = Dashboard(address, tls, port)
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
        protocol_version = "HTTP/1.1"

        def _respond(self) -> None:
            owner.asked.append(self.headers)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            where = urllib.parse.urlsplit(self.path)
            path = _BEFORE.sub("", urllib.parse.unquote(where.path))
            query = dict(urllib.parse.parse_qsl(where.query))
            if not owner.lets(self.headers):
                self._answer(HTTPStatus.UNAUTHORIZED, {"error": "no valid token"})
            elif path.startswith(_LOGS) and owner.illness is None:
                self._serve_log(path.removeprefix(_LOGS) == "stream", query)
            else:
                self._answer(*owner.answer(self.command, path, body))

        def _serve_log(self, follows: bool, asked: dict[str, str]) -> None:
            log = owner.log(asked)
            if log is None or asked["lines"] != "-1":
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "no such log"})
                return
            serve(self, log, follows=follows)

        def _answer(self, status: HTTPStatus, answer: Object) -> None:
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
