"""Kubelets and drivers that do what they should: pods run where they are bound, and end in time.

For tests of what schedulers and operators do. A test that wants a pod to fare badly plays it by
itself, with `nodes`.
"""

import contextlib
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from http import HTTPStatus

from tests.cluster import nodes
from tests.cluster.api import Api, Object, Refused
from tests.cluster.dashboard import Dashboard

_PERIOD_SECONDS = 0.1
_PASSING = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


@contextlib.contextmanager
def playing(api: Api, namespace: str, told: Dashboard) -> Generator[None]:
    """Play the pods of a namespace until the end; every head's dashboard is the one given."""
    ended = threading.Event()
    thread = threading.Thread(target=_play, args=(api, namespace, told, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _play(api: Api, namespace: str, told: Dashboard, ended: threading.Event) -> None:
    while not ended.wait(_PERIOD_SECONDS):
        for pod in api.items(f"/api/v1/namespaces/{namespace}/pods"):
            _play_pod(api, pod, told.address)
        for job in list(told.jobs.values()):
            if job.status == "PENDING":
                job.status = "RUNNING"


def _play_pod(api: Api, pod: Object, address: str) -> None:
    """A pod that is told to end takes all of its grace."""
    ends = pod["metadata"].get("deletionTimestamp")
    try:
        if ends and datetime.fromisoformat(ends) <= datetime.now(UTC):
            nodes.finish_deletion(api, pod)
        elif not ends and pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
            nodes.run(api, pod, ip=address)
    except Refused as refused:
        if refused.answer.status not in _PASSING:  # it is gone, or is another by now
            raise
