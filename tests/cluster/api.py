"""The API server as the tests ask it: one request, one answer, with nothing in between.

The factory's own client is what is tested; a test does not look at its results through itself.
"""

import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATCH = "application/merge-patch+json"

type Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: Object

    @property
    def ok(self) -> bool:
        """Whether the server did it."""
        return self.status < http.client.BAD_REQUEST


class Refused(Exception):
    """The server refused, or knows nothing of it."""

    def __init__(self, asked: str, answer: Answer) -> None:
        super().__init__(f"{asked}: {answer.status} {answer.body.get('message', answer.body)}")
        self.answer = answer


@dataclass(frozen=True)
class Api:
    """One API server, asked by the holder of one token."""

    address: str
    ca: Path
    token: str

    def ask(
        self, method: str, path: str, body: Object | bytes | None = None, kind: str = ""
    ) -> Answer:
        """One request, whatever the answer."""
        where = urllib.parse.urlsplit(self.address)
        context = ssl.create_default_context(cafile=self.ca)
        link = http.client.HTTPSConnection(where.netloc, context=context, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers["Content-Type"] = kind or "application/json"
        data = json.dumps(body) if isinstance(body, dict) else body
        try:
            link.request(method, path, data, headers)
            reply = link.getresponse()
            return Answer(reply.status, _parsed(reply.read()))
        finally:
            link.close()

    def get(self, path: str) -> Object:
        """An object or a list of them.

        Raises:
            Refused: there is no such thing, or the token may not see it.
        """
        return self._must("GET", path)

    def items(self, path: str) -> list[Object]:
        """The objects of a list.

        Raises:
            Refused: as `get`.
        """
        return self.get(path)["items"]

    def create(self, path: str, body: Object | bytes, kind: str = "") -> Object:
        """Create an object.

        Raises:
            Refused: the server did not take it.
        """
        return self._must("POST", path, body, kind)

    def patch(self, path: str, body: Object) -> Object:
        """Change the fields that `body` names.

        Raises:
            Refused: the server did not take it.
        """
        return self._must("PATCH", path, body, PATCH)

    def delete(self, path: str, grace_seconds: int | None = None) -> None:
        """Delete an object; what is gone already is no fault.

        Raises:
            Refused: the server did not do it.
        """
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        answer = self.ask("DELETE", path, options)
        if not answer.ok and answer.status != http.client.NOT_FOUND:
            raise Refused(f"DELETE {path}", answer)

    def exists(self, path: str) -> bool:
        """Whether there is such an object.

        Raises:
            Refused: the token may not know.
        """
        answer = self.ask("GET", path)
        if not answer.ok and answer.status != http.client.NOT_FOUND:
            raise Refused(f"GET {path}", answer)
        return answer.ok

    def ready(self) -> bool:
        """Whether the server answers, and says that it is ready."""
        try:
            return self.ask("GET", "/readyz").ok
        except OSError:
            return False

    def _must(
        self, method: str, path: str, body: Object | bytes | None = None, kind: str = ""
    ) -> Object:
        answer = self.ask(method, path, body, kind)
        if not answer.ok:
            raise Refused(f"{method} {path}", answer)
        return answer.body


def eventually[T](look: Callable[[], T], seconds: float = 30.0) -> T:
    """What `look` gives once it gives something, or the last that it gave when time is up."""
    deadline = time.monotonic() + seconds
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return seen


def _parsed(data: bytes) -> Object:
    try:
        content = json.loads(data)
    except ValueError:
        return {"message": data.decode(errors="replace")}
    return content if isinstance(content, dict) else {"message": content}
