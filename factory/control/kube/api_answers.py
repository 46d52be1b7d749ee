"""What an API server answers to a request, and the error that follows where it is no success.

Nothing here repeats a token, whatever the server says.
"""

import dataclasses
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from factory.control.kube.fields import short, text
from factory.control.kube.foreign_json import json_object
from factory.errors import ClusterError, ClusterOutOfReach, ClusterRefused

_HOPELESS = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "NO_CERTIFICATE")
"""How OpenSSL calls what no further try will mend."""


@dataclass(frozen=True)
class Answer:
    """What came of one try; without an answer the status is 0."""

    status: int
    data: bytes = b""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    problem: str = ""
    hopeless: bool = False

    @property
    def may_pass(self) -> bool:
        """Whether another try can have another outcome."""
        busy = self.status in (0, HTTPStatus.TOO_MANY_REQUESTS)
        return not self.hopeless and (busy or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR)

    @property
    def retry_after_seconds(self) -> float:
        """What the server asks for; 0 where it asks for nothing."""
        asked = self.headers.get("Retry-After", "")
        return float(asked) if asked.isdecimal() else 0.0


def unproved(error: Exception) -> Answer:
    """What comes of an error of TLS."""
    said = short(f"{type(error).__name__} {error}")
    return Answer(0, problem=said, hopeless=any(word in said for word in _HOPELESS))


def refusal(
    asked: str, cluster: str, address: str, answer: Answer, *, tried: str, token: str
) -> ClusterError:
    """What to raise for a request that ends without what was asked for."""
    request = f"Cluster {cluster}: {asked}"
    said = _said(answer, token)
    match answer.status:
        case 0 if answer.hopeless:
            return ClusterError(
                f"{request}: {address} does not prove to be that cluster ({said}). See whether "
                "`api_server` and `ca` in its file belong together."
            )
        case 0:
            return ClusterOutOfReach(
                f"{request}: no answer after {tried} ({said}). See whether {address} is up and "
                "can be reached from here, then try again."
            )
        case 429:
            return ClusterOutOfReach(
                f"{request}: the server is busy (429) after {tried}: {said}. Try again later."
            )
        case 401:
            return ClusterRefused(
                f"{request}: the token is not taken (401), also when read anew. Renew it where "
                "`token` in the cluster's file says.",
                401,
            )
        case 403:
            return ClusterRefused(
                f"{request}: the token may not do that (403): {said}. `factory cluster check "
                f"{cluster}` lists what the factory needs.",
                403,
            )
        case status if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ClusterOutOfReach(
                f"{request}: the server failed ({status}) after {tried}: {said}. Try again later."
            )
        case status if status < HTTPStatus.BAD_REQUEST:
            return ClusterError(
                f"{request}: {address} sends elsewhere ({status}{_elsewhere(answer)}), and the "
                "token goes to no other address. Write the right one as `api_server`."
            )
        case status:
            return ClusterRefused(f"{request}: refused ({status}): {said}.", status)


def _said(answer: Answer, token: str) -> str:
    """The server's own words, without the token if it should repeat it."""
    words = (
        text(json_object(answer.data), "message")
        or answer.problem
        or (HTTPStatus.TOO_MANY_REQUESTS.phrase if answer.status == 429 else "")
    )
    return short(words.replace(token, "***")) or "it says nothing about it"


def _elsewhere(answer: Answer) -> str:
    try:
        to = urllib.parse.urlsplit(answer.headers.get("Location", ""))
    except ValueError:
        return ""
    return f", to {to.scheme}://{to.hostname}" if to.hostname else ""
