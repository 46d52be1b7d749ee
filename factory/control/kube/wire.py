"""One try of a request to an API server. Its answer has to be there within a time and a size.

Nothing is followed elsewhere and nothing is tried again: `api` does that. Whatever the other side
sends, what comes back is an answer, or the kind of problem that there was instead of one.
"""

import json
import socket
from collections.abc import Mapping
from contextvars import ContextVar
from http.client import HTTPException
from typing import Any

from urllib3 import PoolManager, Timeout
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.response import BaseHTTPResponse, HTTPResponse

from factory.control.kube.api_answers import Answer, unproved
from factory.control.kube.deadline import shut, within

LARGEST_ANSWER_BYTES = 64 << 20
"""Once it is unpacked. The nodes of a cluster of thousands are less, and so is any schema."""

BLOCK_BYTES = 1 << 16

_BROKEN = (HTTPError, HTTPException, OSError, ValueError, RecursionError)
"""What comes of a connection that ends, and of what is no HTTP. Their text can hold headers."""

_WORDS: Mapping[type[Exception], str] = {
    NameResolutionError: "its name has no address",
    NewConnectionError: "nothing takes a connection there",
    ConnectTimeoutError: "no connection was made in time",
    ReadTimeoutError: "it did not answer in time",
    ProtocolError: "the connection was cut",
}
"""The narrow ones first: some are kinds of those after them."""


class Wire:
    """The kept connections to one API server, which has to prove itself with that authority."""

    def __init__(self, address: str, ca: str | None) -> None:
        """`ca` is PEM; without it the authorities of this machine count."""
        self._pool = _pool(address, ca)

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Mapping[str, Any] | None,
        wait: tuple[float, float],
    ) -> Answer:
        """What came of it, within both waits: for a connection, and for the whole answer."""
        sent = _Sent()
        before = _under_way.set(sent)
        try:
            with within(sum(wait), sent.cut):
                found = self._pool.request(
                    method,
                    url,
                    headers=headers,
                    body=None if body is None else json.dumps(body),
                    timeout=Timeout(connect=wait[0], read=wait[1]),
                    preload_content=False,
                    redirect=False,
                    retries=False,
                )
                return Answer(found.status, sent.whole(found), found.headers)
        except _BROKEN as error:
            if isinstance(error, SSLError) and not sent.problem:
                return unproved(error)
            return Answer(0, problem=sent.problem or _words(error))
        finally:
            _under_way.reset(before)

    def close(self) -> None:
        """Let go of the connections."""
        self._pool.clear()


def _words(error: Exception) -> str:
    known = (words for kind, words in _WORDS.items() if isinstance(error, kind))
    return next(known, type(error).__name__)


class _Sent:
    """A request that is under way, on the connection that it was sent on."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.problem = ""

    def on(self, connection: socket.socket) -> None:
        self._socket = connection
        if self.problem:
            shut(connection)

    def cut(self) -> None:
        self.problem = "its answer did not end in time"
        if self._socket is not None:
            shut(self._socket)

    def whole(self, found: BaseHTTPResponse) -> bytes:
        blocks: list[bytes] = []
        size = 0
        while block := found.read1(BLOCK_BYTES, decode_content=True):
            size += len(block)
            if size > LARGEST_ANSWER_BYTES:
                self.problem = f"its answer has more than {LARGEST_ANSWER_BYTES:,} bytes"
            if self.problem:
                break
            blocks.append(block)
        if self.problem:  # also where a cut looks like an end
            found.close()
            raise TimeoutError
        return b"".join(blocks)


_under_way: ContextVar[_Sent | None] = ContextVar("under_way", default=None)


class _Connection(HTTPSConnection):
    """Tells the request that is sent on it which socket that is."""

    def getresponse(self) -> HTTPResponse:
        sent = _under_way.get()
        if sent is not None and self.sock is not None:
            sent.on(self.sock)
        return super().getresponse()


class _Pool(HTTPSConnectionPool):
    ConnectionCls = _Connection  # pyright: ignore[reportAssignmentType]  nor is urllib3's own


def _pool(address: str, ca: str | None) -> PoolManager:
    """Of the official client, with a configuration of its own."""
    from kubernetes.client import ApiClient, Configuration

    pool: PoolManager = ApiClient(Configuration(host=address)).rest_client.pool_manager
    pool.pool_classes_by_scheme = {**pool.pool_classes_by_scheme, "https": _Pool}
    if ca is not None:
        pool.connection_pool_kw |= {"ca_cert_data": ca}
    return pool
