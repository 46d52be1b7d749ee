"""What the last look that was answered has shown of an attempt, and the way to its dashboard.

A look that was not answered shows nothing, and takes nothing from what was seen before it.
"""

import contextlib
from collections.abc import Sequence

from factory.control.kube.api import Api
from factory.control.kube.dashboard import Dashboard
from factory.control.kube.fields import Object, is_leaving, text
from factory.control.kube.looking import head_of
from factory.control.kube.objects import Objects
from factory.control.kube.observed import Observed, Seen
from factory.control.kube.submission import Submission
from factory.errors import ClusterError


class LastSeen:
    """One attempt as it was seen last."""

    def __init__(self, api: Api, submission: Submission, objects: Objects, seen: Seen) -> None:
        self._api = api
        self._cluster = submission.cluster
        self._objects = objects
        self._observed: Observed | None = None
        self.seen = seen
        """What all looks together have shown."""

    def keep(self, observed: Observed) -> None:
        """From a look that has just been."""
        if not observed.unreachable:
            self._observed = observed
        self.seen = observed.remembered()

    def job_id(self) -> str:
        """Of the driver's job; empty while there is none."""
        return text(self._rayjob(), "status", "jobId")

    @property
    def shows_driver(self) -> bool:
        """Whether there is a job, and the token with which it can be stopped."""
        return bool(self._objects.token and self.job_id())

    def dashboard(self) -> Dashboard | None:
        """Of its head, once there may be one."""
        if not (self.seen.cluster and self._objects.token):
            return None
        cluster = text(self._rayjob(), "status", "rayClusterName") or self.seen.cluster
        return Dashboard(self._api, self._cluster, cluster, self._objects.token)

    def dashboard_address(self) -> str:
        """For a person; empty while there is none."""
        return self._cluster.dashboard_address(self.seen.cluster) if self.seen.cluster else ""

    def given_up(self) -> Sequence[str]:
        """Workers that Ray took for dead, which nobody but the head may know."""
        with contextlib.suppress(ClusterError):
            dashboard = self.dashboard()
            return dashboard.lost_workers() if dashboard is not None else ()
        return ()

    def nodes(self) -> list[str]:
        """Where its pods are; an empty name for those that have no place."""
        return sorted({text(pod, "spec", "nodeName") for pod in self._pods()})

    @property
    def head(self) -> str:
        """The name of the head's pod; empty where there is none."""
        return head_of(self._pods())

    @property
    def head_stays(self) -> bool:
        """Whether there is a head, and nobody has told it to go."""
        head = self._observed.head if self._observed else None
        return head is not None and not is_leaving(head)

    def _rayjob(self) -> Object | None:
        return self._observed.rayjob if self._observed else None

    def _pods(self) -> Sequence[Object]:
        return (self._observed.pods if self._observed else None) or ()
