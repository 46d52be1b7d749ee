"""A door and a gateway before an API server: the door can be shut, the gateway can be ill.

Requests are passed on to the server with the token that they came with, unless a rule answers
them. Behind the door is all that the factory sees of the server; operator and test go around it.
"""

import contextlib
import http.client
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.control.kube.a_server import Reply, Request, Server, serving

_ALOUD = ("Retry-After",)

type Rule = Callable[[Request, Callable[[Request], Reply]], Reply | None]
"""An answer in the place of the server's, or nothing; it may pass the request on by itself."""


@dataclass
class Gateway:
    """What is asked of an API server, and what is answered instead."""

    told: Server
    address: str
    """Of the API server itself."""
    ca: Path
    rules: list[Rule] = field(default_factory=list[Rule])
    answered: list[tuple[Request, Reply]] = field(default_factory=list[tuple[Request, Reply]])
    """What the server has answered."""

    def answer(self, request: Request) -> Reply:
        """The first rule's answer, or the server's."""
        for rule in list(self.rules):
            if (reply := rule(request, self.forward)) is not None:
                return reply
        return self.forward(request)

    def forward(self, request: Request) -> Reply:
        """The server's answer; the connection is dropped where it gives none."""
        context = ssl.create_default_context(cafile=self.ca)
        where = urlsplit(self.address).netloc
        link = http.client.HTTPSConnection(where, context=context, timeout=30)
        headers = {"Authorization": f"Bearer {request.token}", "Content-Type": "application/json"}
        body = None if request.body is None else json.dumps(request.body)
        try:
            link.request(request.method, request.path, body, headers)
            given = link.getresponse()
            aloud = {name: value for name, value in given.getheaders() if name in _ALOUD}
            reply = Reply(given.status, given.read(), aloud)
        except (OSError, http.client.HTTPException):
            return Reply(dropped=True)
        finally:
            link.close()
        self.answered.append((request, reply))
        return reply

    @contextlib.contextmanager
    def ruled(self, rule: Rule) -> Generator[None]:
        """That rule until the end of the block."""
        self.rules.append(rule)
        try:
            yield
        finally:
            if rule in self.rules:
                self.rules.remove(rule)


class Door:
    """A port that leads to another; while it is shut, connections are refused."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listening: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = 0

    def open(self) -> None:
        """Let connections in, at the same port as before."""
        listening = socket.create_server(("127.0.0.1", self.port))
        self._listening, self.port = listening, listening.getsockname()[1]
        self._begin(self._let_in, listening)

    def shut(self) -> None:
        """Cut every connection off, and refuse more."""
        if self._listening is not None:
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._open:
            one.close()
        self._open.clear()
        self._threads.clear()

    def _let_in(self, listening: socket.socket) -> None:
        while True:
            try:
                outer, _ = listening.accept()
            except OSError:
                return
            try:
                inner = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                outer.close()
                continue
            self._open += [outer, inner]
            self._begin(_carry, outer, inner)
            self._begin(_carry, inner, outer)

    def _begin(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _carry(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            to.sendall(data)
    for one in (source, to):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def gateway(folder: Path, address: str, ca: Path) -> Generator[tuple[Gateway, Door]]:
    """Both before the API server at that address; `told.ca` proves the gateway."""
    with serving(folder) as told:
        made = Gateway(told, address, ca)
        told.answer = made.answer
        door = Door(urlsplit(told.address).port or 0)
        door.open()
        try:
            yield made, door
        finally:
            door.shut()


# Rules.


def times(count: int, which: Callable[[Request], bool], reply: Reply) -> Rule:
    """That answer to the next so many of these requests."""
    numbers = itertools.count(1)

    def rule(request: Request, _forward: Callable[[Request], Reply]) -> Reply | None:
        return reply if which(request) and next(numbers) <= count else None

    return rule


def says(status: int, reason: str, **headers: str) -> Reply:
    """The server's refusal of that kind."""
    body: dict[str, Any] = {"kind": "Status", "status": "Failure", "reason": reason, "code": status}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {**body, "message": f"{reason}, says the test"}, named)


def everything(_: Request) -> bool:
    """Every request."""
    return True


def reads(request: Request) -> bool:
    """Every look."""
    return request.method == "GET"


def creates(kind: str) -> Callable[[Request], bool]:
    """The creation of one of these."""
    return lambda request: request.method == "POST" and request.path.endswith(f"/{kind}")


def removes(kind: str) -> Callable[[Request], bool]:
    """The deletion of one of these."""
    return lambda request: request.method == "DELETE" and f"/{kind}/" in request.path
