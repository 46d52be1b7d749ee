"""Looks at one attempt through its cluster's API server. A quiet run is asked little.

A run whose pods are the same as at the last whole look, and all run, costs two requests. Everything
else is asked for only while the run waits, or when something is not as it was: the Ray cluster,
KAI's PodGroup and queue, and the events of each object that is not well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

from factory.control.clusters import Kubernetes
from factory.control.kube.api import Api, Json
from factory.control.kube.fields import Object, is_leaving, label, name, text
from factory.control.kube.names import ATTEMPT, ROOT_RUN, STEP
from factory.control.kube.observed import Listed, Observed, Seen, observe
from factory.control.kube.submission import Submission
from factory.errors import ClusterError, ClusterRefused

MOST_PODS_ASKED = 8
"""Pods whose events are asked for one by one; those of a gang say the same."""

QUEUE = "kai.scheduler/queue"


class Lookout:
    """One attempt's objects on one cluster."""

    def __init__(self, api: Api, submission: Submission) -> None:
        self._api = api
        self._cluster = submission.cluster
        self._name = submission.name
        self._queue = submission.queue.name
        labels = submission.labels
        self._selector = ",".join(f"{key}={labels[key]}" for key in (ROOT_RUN, STEP, ATTEMPT))
        self._well: frozenset[str] = frozenset()
        self._known_pods: tuple[str, ...] = ()
        self._uid = ""

    def look(self, seen: Seen, *, thorough: bool = False) -> tuple[Observed, Sequence[Object]]:
        """One look, and KAI's queue where the run waits in it. It never raises for a cluster."""
        now = datetime.now(UTC)
        try:
            listed = self._listed(thorough=thorough)
            queues = self._queues() if listed.podgroups else ()
        except ClusterError as error:
            return Observed(name=self._name, now=now, seen=seen, unreachable=str(error)), ()
        found = observe(self._name, now, listed)
        return replace(found, seen=seen), queues

    def left(self) -> list[str]:
        """What is still there of the attempt, whatever it is.

        Raises:
            ClusterError: the cluster cannot be asked.
        """
        found = [f"RayJob {self._name}"] if self.rayjob() is not None else []
        found += [f"RayCluster {name(one)}" for one in self._list("rayclusters")]
        return found + [f"Pod {name(one)}" for one in self._pods()]

    def rayjob(self) -> Json | None:
        """The attempt's RayJob, if it is there.

        Raises:
            ClusterError: the cluster cannot be asked.
        """
        return self._get(_ray(self._cluster, "rayjobs"), self._name)

    def _listed(self, *, thorough: bool) -> Listed:
        rayjob = self.rayjob()
        pods = self._pods()
        if rayjob is not None:
            self._uid = text(rayjob, "metadata", "uid")
        if not thorough and self._is_quiet(rayjob, pods):
            return Listed(rayjobs=[rayjob] if rayjob else [], pods=pods)
        clusters = self._list("rayclusters")
        group = self._podgroup()
        self._well = frozenset(_uids(pods)) if _all_run(pods) else frozenset()
        listed = Listed(
            rayjobs=[rayjob] if rayjob else [],
            rayclusters=clusters,
            pods=pods,
            podgroups=[group] if group else [],
            events=list(self._events(clusters, pods, group)),
        )
        names = (*(name(pod) for pod in pods), *self._known_pods)
        self._known_pods = tuple(dict.fromkeys(names))  # KubeRay says late that a job has failed
        return listed

    def _is_quiet(self, rayjob: Json | None, pods: Sequence[Json]) -> bool:
        status = (
            text(rayjob, "status", "jobDeploymentStatus"),
            text(rayjob, "status", "jobStatus"),
        )
        return (
            status == ("Running", "RUNNING")
            and bool(self._well)
            and _uids(pods) == self._well
            and _all_run(pods)
        )

    def _pods(self) -> list[Json]:
        path = f"/api/v1/namespaces/{self._cluster.namespace}/pods"
        return self._api.items(path, labelSelector=self._selector)

    def _list(self, kind: str) -> list[Json]:
        return self._api.items(_ray(self._cluster, kind), labelSelector=self._selector)

    def _podgroup(self) -> Json | None:
        if self._cluster.scheduler != "kai" or not self._uid:
            return None
        path = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{self._cluster.namespace}/podgroups"
        return self._get(path, f"pg-{self._name}-{self._uid}")

    def _queues(self) -> list[Json]:
        """For words only: a token that may not see queues is no reason to end a run."""
        try:
            return [self._api.get(f"/apis/scheduling.run.ai/v2/queues/{self._queue}")]
        except ClusterRefused:
            return []

    def _events(
        self, clusters: Sequence[Json], pods: Sequence[Json], group: Json | None
    ) -> Iterator[Json]:
        there = [pod for pod in pods if not _runs(pod)]
        present = {name(pod) for pod in pods}
        gone = [one for one in self._known_pods if one not in present]
        names = [self._name, *map(name, clusters), *([name(group)] if group else [])]
        names += [*map(name, there), *gone][:MOST_PODS_ASKED]
        path = f"/api/v1/namespaces/{self._cluster.namespace}/events"
        for one in names:
            yield from self._api.items(path, fieldSelector=f"involvedObject.name={one}")

    def _get(self, path: str, named: str) -> Json | None:
        try:
            return self._api.get(f"{path}/{named}")
        except ClusterRefused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None
            raise


def head_of(pods: Sequence[Object]) -> str:
    """The name of the head's pod; empty where there is none."""
    heads = (name(pod) for pod in pods if label(pod, "ray.io/node-type") == "head")
    return next(heads, "")


def _ray(cluster: Kubernetes, kind: str) -> str:
    return f"/apis/ray.io/v1/namespaces/{cluster.namespace}/{kind}"


def _uids(pods: Sequence[Object]) -> frozenset[str]:
    return frozenset(text(pod, "metadata", "uid") for pod in pods)


def _runs(pod: Object) -> bool:
    return text(pod, "status", "phase") == "Running" and not is_leaving(pod)


def _all_run(pods: Sequence[Object]) -> bool:
    return bool(pods) and all(map(_runs, pods))
