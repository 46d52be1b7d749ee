"""One cluster's API server: requests with time-outs, tried again where that can help.

A client belongs to one cluster and is made from its file; there is no process-wide default that a
request could fall back to. Tokens come from `credentials`. An error names cluster and request, says
what to do, and never holds the token, whatever the server answers.

What is tried again: no answer, 429 and 5xx, until the budget of the request is spent; 401 once,
with a token read anew. A `create` may therefore meet what it has made itself: that is a 409.
"""

import random
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from factory.control.clusters import Kubernetes
from factory.control.kube.api_answers import Answer, refusal
from factory.control.kube.credentials import ExecTokens, FileTokens, Pod, SecretTokens, Tokens
from factory.control.kube.foreign_json import json_object
from factory.control.kube.wire import Wire
from factory.errors import ClusterError, ClusterOutOfReach

LONGEST_WAIT_SECONDS = 16.0

type Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a request waits, and how long it is tried again."""

    connect_seconds: float = 10.0
    answer_seconds: float = 30.0
    """For the whole answer; a try that has taken both is cut off, whatever has come by then."""
    budget_seconds: float = 60.0
    first_wait_seconds: float = 0.5


SOMEBODY_WAITS = Patience(connect_seconds=5, answer_seconds=20, budget_seconds=10)
"""For what is asked at a terminal."""


class Api:
    """The API server of one cluster."""

    def __init__(
        self, name: str, address: str, ca: str | None, tokens: Tokens, patience: Patience
    ) -> None:
        self.name = name
        self.address = address
        self._ca = ca
        self._tokens = tokens
        self._patience = patience
        self._wire = Wire(address, ca)

    def __repr__(self) -> str:
        return f"Api({self.name}, {self.address})"

    def get(self, path: str, **query: str) -> Json:
        """An object, or a list of them.

        Raises:
            ClusterRefused: there is no such thing (404), or the token may not see it (403).
            ClusterOutOfReach: no answer, not all of it in time, or one that is no object.
            ClusterError: there is no token, or this is no API server.
        """
        return self._object("GET", path, query=query)

    def items(self, path: str, **query: str) -> list[Json]:
        """The objects of a list.

        Raises:
            ClusterError: as `get`.
        """
        found = self.get(path, **query).get("items")
        return cast("list[Json]", found) if isinstance(found, list) else []

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """Create an object.

        Raises:
            ClusterRefused: there is one of that name (409), or it is not valid (422).
            ClusterError: as `get`.
        """
        return self._object("POST", path, body, query=query)

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Delete an object.

        Raises:
            ClusterError: as `get`.
        """
        self.ask("DELETE", path, body)

    def read(self, path: str, **query: str) -> bytes:
        """What is no object: the log of a container.

        Raises:
            ClusterError: as `get`.
        """
        return self.ask("GET", path, query=query)

    def token(self) -> str:
        """The token that counts now. For a header, and nothing else.

        Raises:
            ClusterError: there is none.
        """
        try:
            return self._tokens.token()
        except ClusterError as error:
            raise type(error)(f"Cluster {self.name}: {error}") from None

    def tls(self) -> ssl.SSLContext:
        """How the server has to prove itself, for what is not asked through this client."""
        context = ssl.create_default_context()
        if self._ca is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=self._ca)
        return context

    def close(self) -> None:
        """Let go of its connections."""
        self._wire.close()

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """One request, tried again where that can help; the body of its answer.

        Raises:
            ClusterError: as `get`.
        """
        url = self.address + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        begun, tries, renewed = time.monotonic(), 0, False
        while True:
            token = self.token()
            answer = self._once(method, url, body, token)
            tries += 1
            if answer.status == HTTPStatus.UNAUTHORIZED and not renewed:
                self._tokens.renew()
                renewed = True
                continue
            if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                return answer.data
            wait = max(self._wait(tries), answer.retry_after_seconds)
            spent = time.monotonic() - begun
            if not answer.may_pass or spent + wait > self._patience.budget_seconds:
                asked = f"{method} {path}"
                tried = f"{tries} {'try' if tries == 1 else 'tries'} in {spent:.0f} s"
                raise refusal(asked, self.name, self.address, answer, tried=tried, token=token)
            time.sleep(wait)

    def _object(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        found = json_object(self.ask(method, path, body, query=query))
        if found is None:
            raise ClusterOutOfReach(
                f"Cluster {self.name}: {method} {path} was answered with something else than a "
                f"JSON object. See whether {self.address} is its API server, and not a page in "
                "front of it."
            )
        return found

    def _wait(self, tries: int) -> float:
        """Twice as long each time, and never the same for two clients."""
        longest = min(LONGEST_WAIT_SECONDS, self._patience.first_wait_seconds * 2 ** (tries - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret

    def _once(self, method: str, url: str, body: Mapping[str, Any] | None, token: str) -> Answer:
        headers = {
            "Accept": "application/json, */*",
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "User-Agent": "ai-factory",
        }
        wait = (self._patience.connect_seconds, self._patience.answer_seconds)
        return self._wire.ask(method, url, headers, body, wait)


def connect(
    cluster: Kubernetes, *, pod: Pod | None = None, patience: Patience | None = None
) -> Api:
    """The API server of a cluster. Nothing is asked of it yet.

    Raises:
        ClusterError: its certificate authority cannot be read, or a pod is needed and this is none.
    """
    here = pod or Pod()
    waits = patience or Patience()
    address = cluster.api_server or here.address
    try:
        return Api(cluster.name, address, _ca(cluster, here), _tokens(cluster, here, waits), waits)
    except ClusterError as error:
        raise type(error)(f"Cluster {cluster.name}: {error}") from None


def _tokens(cluster: Kubernetes, pod: Pod, patience: Patience) -> Tokens:
    source = cluster.token
    if source.file is not None:
        return FileTokens(Path(source.file))
    if source.exec is not None:
        return ExecTokens(source.exec)
    if source.secret is None:
        return FileTokens(pod.token)
    entry = source.secret
    path = f"/api/v1/namespaces/{pod.namespace()}/secrets/{entry.name}"
    beside = Api(
        "of the factory itself", pod.address, _pem(pod.ca), FileTokens(pod.token), patience
    )
    return SecretTokens(entry, lambda: beside.get(path))


def _ca(cluster: Kubernetes, pod: Pod) -> str | None:
    """The PEM of its authority; none for those of this machine."""
    if cluster.ca is None:
        return _pem(pod.ca) if cluster.token.in_cluster and not cluster.api_server else None
    return cluster.ca.inline or _pem(Path(cluster.ca.file or ""))


def _pem(path: Path) -> str:
    try:
        content = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ClusterError(
            f"its certificate authority cannot be read from {path} ({said}). Put the PEM file of "
            "the API server's authority there."
        ) from None
    if "-----BEGIN CERTIFICATE-----" not in content:
        raise ClusterError(f"{path} is no PEM certificate: it has no -----BEGIN CERTIFICATE-----.")
    return content
