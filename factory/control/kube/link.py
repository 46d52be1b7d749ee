"""One request to a run's dashboard: HTTP with time-outs, and the answer's body as blocks.

The API server is asked through `api`; an answer that goes on for ever is read in `following`. A
dashboard runs the code of whoever made the run, so what it answers is bounded and never trusted, it
is not followed elsewhere, and no error holds a token.
"""

import contextlib
import http.client
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field

from factory.control.kube.deadline import shut, within
from factory.control.kube.fields import short
from factory.errors import ClusterError, ClusterOutOfReach, ClusterRefused

BLOCK_BYTES = 1 << 18
LARGEST_ANSWER_BYTES = 4 << 20

_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "ai-factory"}
_BROKEN = (OSError, http.client.HTTPException, ValueError)
"""What `http.client` raises where a connection ends, or is no HTTP. Their text can hold headers."""


@dataclass(frozen=True)
class Link:
    """Where a dashboard answers, and what proves who asks."""

    address: str
    headers: Callable[[], Mapping[str, str]] = field(repr=False)
    tls: Callable[[], ssl.SSLContext]
    connect_seconds: float

    def ask(self, method: str, path: str, wait_seconds: float) -> bytes:
        """A whole answer, within those seconds beyond what a connection may take.

        Raises:
            ClusterRefused: the answer is no.
            ClusterOutOfReach: no answer, or not all of it.
        """
        with (
            contextlib.closing(Exchange(self, method, path, wait_seconds)) as exchange,
            within(self.connect_seconds + wait_seconds, exchange.interrupt),
        ):
            exchange.begin()
            return b"".join(exchange.blocks(LARGEST_ANSWER_BYTES))


class Exchange:
    """A request and its answer, for one thread. Another may interrupt it."""

    def __init__(self, link: Link, method: str, path: str, wait_seconds: float) -> None:
        self._link = link
        self._asked = f"{method} {path.partition('?')[0]}"
        self._method = method
        self._wait_seconds = wait_seconds
        with self._lost():
            where = urllib.parse.urlsplit(link.address)
            self._path = where.path.rstrip("/") + path
            self._connection = _connection(link, where)
        self._response: http.client.HTTPResponse | None = None
        self._socket: socket.socket | None = None
        self._interrupted = False

    def begin(self) -> None:
        """Ask, and wait until the answer begins.

        Raises:
            ClusterRefused: the answer is no.
            ClusterOutOfReach: no answer.
        """
        headers = {
            "Accept-Encoding": "identity",
            "User-Agent": "ai-factory",
            **self._link.headers(),
        }
        with self._lost():
            self._connection.connect()
            self._socket = self._connection.sock
            _keep_alive(self._connection.sock, self._wait_seconds)
            if self._interrupted:
                raise ConnectionAbortedError
            self._connection.request(self._method, self._path, headers=headers)
            response = self._response = self._connection.getresponse()
            if response.status == http.client.OK:
                return
            said = response.read(LARGEST_ANSWER_BYTES)
        raise self._refusal(response.status, said, headers)

    def blocks(self, limit: int | None = None) -> Iterator[bytes]:
        """The body as it comes. It ends only where the other side says that this was all.

        Raises:
            ClusterOutOfReach: the connection ended before that, or it is larger than the limit.
        """
        response = self._response
        if response is None:
            raise RuntimeError("an answer is read before it has begun")
        size = 0
        while True:
            with self._lost():
                block = response.read1(BLOCK_BYTES)
                if not block and (response.length or not self._has_an_end):
                    raise ConnectionResetError
            if not block:
                return
            size += len(block)
            if limit is not None and size > limit:
                raise ClusterOutOfReach(f"{self} was answered with more than {limit:,} bytes.")
            yield block

    def interrupt(self) -> None:
        """Let the thread that waits for the answer go on, with an error."""
        self._interrupted = True
        if self._socket is not None:
            shut(self._socket)

    def close(self) -> None:
        """Let go of the connection."""
        if self._response is not None:
            self._response.close()
        self._connection.close()

    @property
    def _has_an_end(self) -> bool:
        """Whether the other side says where its body ends, other than by going away."""
        response = self._response
        return response is not None and (response.chunked or response.length is not None)

    @contextlib.contextmanager
    def _lost(self) -> Generator[None]:
        try:
            yield
        except _BROKEN as error:
            raise ClusterOutOfReach(
                f"{self}: no answer, or not all of it ({type(error).__name__}). The head may be "
                "starting or gone, or something between cut the connection."
            ) from None

    def _refusal(self, status: int, said: bytes, headers: Mapping[str, str]) -> ClusterError:
        lines = said.decode(errors="replace").strip().splitlines()
        words = lines[-1] if lines else ""
        for value in headers.values():
            words = words.replace(value.removeprefix("Bearer "), "***")
        text = f"{self} was answered with {status}: {short(words) or 'it says nothing about it'}."
        if status >= http.client.INTERNAL_SERVER_ERROR or status == 429:
            return ClusterOutOfReach(text)
        return ClusterRefused(text, status)

    def __str__(self) -> str:
        return f"{self._asked} of the dashboard at {self._link.address}"


def _connection(link: Link, where: urllib.parse.SplitResult) -> http.client.HTTPConnection:
    if where.scheme != "https":
        return http.client.HTTPConnection(where.netloc, timeout=link.connect_seconds)
    return http.client.HTTPSConnection(
        where.netloc, timeout=link.connect_seconds, context=link.tls()
    )


def until(blocks: Iterator[bytes], deadline: float) -> Generator[bytes]:
    """The same blocks, while there is time.

    Raises:
        ClusterOutOfReach: there is none left.
    """
    for block in blocks:
        if time.monotonic() > deadline:
            raise ClusterOutOfReach("The dashboard answers too slowly for the time that is left.")
        yield block


def _keep_alive(sock: socket.socket, wait_seconds: float) -> None:
    """Notice a peer that is gone without a word, and let a read wait for as long as it may."""
    sock.settimeout(wait_seconds)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
