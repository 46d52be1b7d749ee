"""Runs on a cluster with KAI: submitted as the builder makes them, judged by the state machine.

What is looked at is what the factory's account may see; that nothing is left is asked of the
administrator. The two nodes have no kubelets, and their pods fare well (`played`).
"""

import contextlib
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from factory.control.kube.observed import Listed, Observed, Seen, observe
from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.states import State, state_of
from factory.spec import Purpose
from tests.cluster import kai
from tests.cluster.access import factory_account
from tests.cluster.api import Api, Object, eventually
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import Dashboard, dashboard
from tests.cluster.nodes import SHAPE, add_node, remove_node
from tests.cluster.played import playing
from tests.control.kube.submissions import launch, submission

NODES = ("node-a", "node-b")
GRACE_SECONDS = 5
"""Of a probe, whose place is wanted by others; the default of its cluster's file is longer."""

_SHAPE = {"count": len(NODES), "cpus": int(SHAPE["cpu"]), "memory_gib": 512}
_CLAIM = "namespace-public"
_RAY, _SCHEDULING = "/apis/ray.io/v1", "/apis/scheduling.run.ai"


@dataclass
class Gangs:
    """The runs of one namespace."""

    plane: ControlPlane
    namespace: str
    api: Api
    """As the factory's account sees the cluster."""
    told: Dashboard
    _seen: dict[str, Seen] = field(default_factory=dict[str, Seen])

    def submit(self, purpose: Purpose = "training", workers: int = 2, **queue: Any) -> str:
        """Create a run and its Secret; `queue` changes fields of its queue. Gives its name."""
        cluster = {
            "namespace": self.namespace,
            "nodes": {**_SHAPE, "network_devices": None},
            "grace_seconds": GRACE_SECONDS,
            "queues": {purpose: queue},
        }
        made = submission(
            launch(spec={"workers": workers}),
            root_run_id=str(uuid.uuid4()),
            purpose=purpose,
            cluster=cluster,
        )
        job = rayjob(made)
        head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
        head["ports"] = [{"name": "dashboard", "containerPort": self.told.port}]
        self.api.create(self._path("/api/v1", "secrets"), secret(made, uuid.uuid4().hex))
        self.api.create(self._path(_RAY, "rayjobs"), job)
        return made.name

    def look(self, of: str) -> Observed:
        """One look at a run, which remembers the looks before."""
        kinds = {
            "rayjobs": _RAY,
            "rayclusters": _RAY,
            "pods": "/api/v1",
            "podgroups": f"{_SCHEDULING}/v2alpha2",
            "events": "/api/v1",
        }
        held = {kind: self.api.items(self._path(base, kind)) for kind, base in kinds.items()}
        seen = self._seen.get(of, Seen())
        observed = replace(observe(of, datetime.now(UTC), Listed(**held)), seen=seen)
        self._seen[of] = observed.remembered()
        return observed

    def state(self, of: str) -> State:
        """Where a run is, as its page would say it."""
        return state_of(self.look(of), self.queues())

    def queues(self) -> list[Object]:
        """KAI's queues."""
        return self.plane.admin.items(kai.QUEUES)

    def reaches(self, of: str, phase: str, seconds: float = 60) -> State:
        """The state of a run once it is in that phase, or the last one when time is up."""
        states: list[State] = []

        def there() -> bool:
            states.append(self.state(of))
            return states[-1].phase == phase

        eventually(there, seconds)
        return states[-1]

    def delete(self, of: str) -> None:
        """What a client does with a run that is over, or that nobody wants any more."""
        self.api.delete(f"{self._path(_RAY, 'rayjobs')}/{of}")
        self.api.delete(f"{self._path('/api/v1', 'secrets')}/{of}-token")

    def left(self, of: str) -> list[str]:
        """Everything in the namespace that a run has left."""
        kinds = {
            _RAY: ("rayjobs", "rayclusters"),
            "/api/v1": ("pods", "secrets", "services", "endpoints"),
            f"{_SCHEDULING}/v2alpha2": ("podgroups",),
            f"{_SCHEDULING}/v1alpha2": ("bindrequests",),
        }
        return [
            f"{kind}/{one['metadata']['name']}"
            for base, names in kinds.items()
            for kind in names
            for one in self.plane.admin.items(self._path(base, kind))
            if of in one["metadata"]["name"]
        ]

    def end_all(self) -> None:
        """Delete every run, and wait until nothing is left."""
        for job in self.plane.admin.items(self._path(_RAY, "rayjobs")):
            name = job["metadata"]["name"]
            self.delete(name)
            if not eventually(lambda name=name: not self.left(name), 60):
                raise RuntimeError(f"Of {name} there is left: {', '.join(self.left(name))}")

    def _path(self, base: str, kind: str) -> str:
        return f"{base}/namespaces/{self.namespace}/{kind}"


@contextlib.contextmanager
def gangs(plane: ControlPlane) -> Generator[Gangs]:
    """A namespace of its own on two nodes of eight GPUs; everything is removed afterwards.

    Raises:
        Refused: the server did not take something of it.
        RuntimeError: a run left something behind.
    """
    namespace = f"training-{uuid.uuid4().hex[:8]}"
    admin = plane.admin
    admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    _make_volume(admin, namespace)
    for name in NODES:
        add_node(admin, name)
    api = factory_account(plane, namespace).api()
    try:
        with dashboard() as told, playing(admin, namespace, told):
            made = Gangs(plane, namespace, api, told)
            yield made
            made.end_all()
    finally:
        admin.delete(f"/api/v1/namespaces/{namespace}")
        admin.delete(f"/api/v1/persistentvolumes/{namespace}")
        for name in NODES:
            remove_node(admin, name)


def bound(pods: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """The nodes of the pods that have one."""
    return [node for pod in pods or () if (node := pod["spec"].get("nodeName"))]


def leaving(pods: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """The pods that have been told to end."""
    return [pod for pod in pods or () if "deletionTimestamp" in pod["metadata"]]


def _make_volume(admin: Api, namespace: str) -> None:
    """The tree of public data; KAI places no pod whose claim is not bound."""
    rest = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    claim = {"name": _CLAIM, "namespace": namespace}
    volume = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tree"}, "claimRef": claim}
    admin.create(
        "/api/v1/persistentvolumes", {"metadata": {"name": namespace}, "spec": {**rest, **volume}}
    )
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    asked = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": namespace}
    admin.create(path, {"metadata": {"name": _CLAIM}, "spec": {**rest, **asked}})
    if not eventually(lambda: admin.get(f"{path}/{_CLAIM}")["status"].get("phase") == "Bound"):
        raise RuntimeError(f"The claim {_CLAIM} was not bound")
