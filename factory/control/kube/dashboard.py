"""The Ray dashboard of one run's head: how its job fares, its stop, and the driver's log.

It is reached through the API server's service proxy, or at the address that the cluster's file
gives. The proxy takes `Authorization` for itself, so Ray's own token goes in `X-Ray-Authorization`,
and the API server's token goes to no other address than the API server.

Ray 2.60 has three ways to the driver's log, none of which takes an offset:

- `/api/jobs/ID/logs/tail`, a websocket. The file is read as text: it ends for ever at the first
  byte that is not UTF-8, turns each carriage return into a line break, and sends a line of 5 MB as
  one frame, larger than many clients take (close code 1009).
- `/api/jobs/ID/logs`, the same text as one JSON string, whole in the memory of three processes.
- `/api/v0/logs/stream` and `/api/v0/logs/file`, blocks of the file as they are, whatever they hold.
  They are used here. Ray ends them after five minutes; a log that takes longer to send from its
  first byte on is never seen whole, and what a reconnect costs grows with the log.
"""

import contextlib
import ssl
import time
import urllib.parse
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from factory.control.clusters import Kubernetes
from factory.control.kube.api import Api, Patience
from factory.control.kube.deadline import within
from factory.control.kube.fields import Object, objects, short, text
from factory.control.kube.following import followed
from factory.control.kube.foreign_json import json_object
from factory.control.kube.link import Exchange, Link, until
from factory.errors import ClusterOutOfReach, ClusterRefused

TAIL_SECONDS = 330.0
"""Without a byte; Ray itself ends a stream after 300 s."""

_ENDED = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
_NOT_FOUND = 404
_NODES = "/api/v0/nodes"
_UNEXPECTED = "Unexpected termination"
_UNKNOWN = ("does not exist", " not found")
"""How Ray says 404 of a job, and Kubernetes of a service; a wrong address says it otherwise."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the dashboard tells of it."""

    id: str
    status: str
    """PENDING, RUNNING, STOPPED, SUCCEEDED, FAILED."""
    message: str = ""
    exit_code: int | None = None
    node_id: str = ""
    """Of the Ray node where its driver runs; empty before it does. A new head is another node."""

    @property
    def ended(self) -> bool:
        """Nothing more will happen by itself."""
        return self.status in _ENDED


class Dashboard:
    """The dashboard of one Ray cluster."""

    def __init__(
        self,
        api: Api,
        cluster: Kubernetes,
        ray_cluster: str,
        token: str,
        patience: Patience | None = None,
    ) -> None:
        self._api = api
        self._token = token
        self._patience = patience or Patience()
        self._proxied = cluster.dashboard.route == "service_proxy"
        self.address = cluster.dashboard.address(api.address, cluster.namespace, ray_cluster)
        """For a person to click; behind a service proxy their browser needs a token too."""
        self._link = Link(self.address, self._headers, self._tls, self._patience.connect_seconds)

    def __repr__(self) -> str:
        return f"Dashboard({self.address})"

    def job_status(self, job_id: str) -> Job | None:
        """How a job fares; nothing where this head does not know it.

        Raises:
            ClusterRefused: a token is not taken, or may not do that.
            ClusterOutOfReach: the head does not answer now, or with something else.
            ClusterError: there is no token.
        """
        found = self._object("GET", _path(job_id))
        if found is None:
            return None
        code = found.get("driver_exit_code")
        return Job(
            id=job_id,
            status=text(found, "status"),
            message=text(found, "message"),
            exit_code=code if isinstance(code, int) else None,
            node_id=text(found, "driver_node_id"),
        )

    def stop_job(self, job_id: str) -> bool:
        """Ask the job to stop (SIGTERM to its driver). False where there is nothing to stop.

        Raises:
            ClusterError: as `job_status`.
        """
        found = self._object("POST", f"{_path(job_id)}/stop")
        return bool(found and found.get("stopped"))

    def lost_workers(self) -> list[str]:
        """What Ray says of each worker that it took for dead.

        Raises:
            ClusterError: as `job_status`.
        """
        nodes = objects(self._object("GET", _NODES), "data", "result", "result")
        return [
            f"Ray on {text(node, 'node_ip')}: {short(text(node, 'state_message'))}"
            for node in nodes
            if text(node, "state") == "DEAD"
            and text(node, "state_message").startswith(_UNEXPECTED)
            and node.get("is_head_node") is False
        ]

    def tail(self, job: Job) -> Generator[bytes]:
        """The driver's log from its first byte on, as it grows; `b""` where it does not.

        It ends with an error only: also a log that does not grow is cut off after a while.

        Raises:
            ClusterError: as `job_status`; also where the log of that node is not there.
        """
        path = _log_path("stream", job)
        return followed(Exchange(self._link, "GET", path, TAIL_SECONDS))

    def logs(self, job: Job, seconds: float) -> Generator[bytes]:
        """The driver's log from its first byte to the last that is there now.

        Raises:
            ClusterError: as `tail`; also where not all of it came in that time.
        """
        deadline = time.monotonic() + seconds
        wait = max(0.1, min(self._patience.answer_seconds, seconds))
        path = f"{_log_path('file', job)}&timeout={int(seconds) + 1}"
        with contextlib.closing(Exchange(self._link, "GET", path, wait)) as exchange:
            with within(wait, exchange.interrupt):
                exchange.begin()
            yield from until(exchange.blocks(), deadline)

    def _object(self, method: str, path: str) -> Object | None:
        try:
            data = self._link.ask(method, path, self._patience.answer_seconds)
        except ClusterRefused as error:
            if error.status == _NOT_FOUND and any(words in str(error) for words in _UNKNOWN):
                return None
            raise
        found = json_object(data)
        if found is None:
            raise ClusterOutOfReach(
                f"{method} {path} of the dashboard at {self.address} was answered with something "
                "else than a JSON object. See whether it is a Ray dashboard, and not a page in "
                "front of it."
            )
        return found

    def _headers(self) -> Mapping[str, str]:
        own = {"X-Ray-Authorization": f"Bearer {self._token}"}
        return own | ({"Authorization": f"Bearer {self._api.token()}"} if self._proxied else {})

    def _tls(self) -> ssl.SSLContext:
        return self._api.tls() if self._proxied else ssl.create_default_context()


def _path(job_id: str) -> str:
    return f"/api/jobs/{urllib.parse.quote(job_id, safe='')}"


def _log_path(kind: str, job: Job) -> str:
    """Of all lines; without a number Ray gives the last thousand."""
    asked = {"node_id": job.node_id, "filename": f"job-driver-{job.id}.log", "lines": "-1"}
    return f"/api/v0/logs/{kind}?{urllib.parse.urlencode(asked)}"
