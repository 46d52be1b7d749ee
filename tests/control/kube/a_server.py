"""An HTTPS server of the test's own in the place of an API server: it answers as it is told."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cluster.certificates import write_server_identity

DRIP_SECONDS = 0.05


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after_seconds: float = 0.0
    dropped: bool = False
    begins: bytes = b""
    drips: bytes = b""
    """Instead of all that: an answer as it is sent, and what follows piece by piece, for ever."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    token: str
    body: Any


@dataclass
class Server:
    address: str
    ca: Path
    replies: list[Reply] = field(default_factory=list[Reply])
    """Answers to the next requests; then `answer` is asked."""
    answer: Callable[[Request], Reply] = field(default=lambda _: Reply())
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.replies.pop(0) if self.replies else self.answer(request)


@contextlib.contextmanager
def serving(folder: Path) -> Generator[Server]:
    write_server_identity(folder, "the test", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    http = _Quiet(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    http.socket = context.wrap_socket(http.socket, server_side=True)
    http.told = Server(f"https://127.0.0.1:{http.server_address[1]}", folder / "ca.crt")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield http.told
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class _Quiet(ThreadingHTTPServer):
    told: Server

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the certificate, or does not wait, is what a test wants."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Quiet

    def setup(self) -> None:
        super().setup()
        self.server.told.connections += 1

    def _handle(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        reply = self.server.told.reply(Request(self.command, self.path, token, body))
        time.sleep(reply.after_seconds)
        if reply.dropped:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if reply.drips:
            self._drip(reply)
            return
        data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _drip(self, reply: Reply) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):  # until nobody waits for it any more
            self.wfile.write(reply.begins)
            while True:
                self.wfile.write(reply.drips)
                time.sleep(DRIP_SECONDS)

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the test looks at the requests."""
