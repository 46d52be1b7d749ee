"""Runs on a cluster with KAI: made, looked at and removed by the parts of the factory's client.

The holder of the factory's token looks; that nothing is left is asked of the administrator. The two
nodes have no kubelets, and their pods fare well (`played`).
"""

import contextlib
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factory.control.kube.api import connect
from factory.control.kube.looking import Lookout
from factory.control.kube.objects import Objects
from factory.control.kube.observed import Observed, Seen
from factory.control.kube.rayjob import rayjob
from factory.control.kube.states import State, state_of
from factory.spec import Purpose
from tests.cluster.access import ACCOUNT, Account, factory_account
from tests.cluster.api import Api, Object, eventually
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import dashboard
from tests.cluster.nodes import SHAPE, add_node, remove_node
from tests.cluster.played import playing
from tests.cluster.stage import PORT, an_address
from tests.control.kube.submissions import launch, submission

NODES = ("node-a", "node-b")
GRACE_SECONDS = 5
"""What a pod gets to end."""

_SHAPE = {"count": len(NODES), "cpus": int(SHAPE["cpu"]), "memory_gib": 512}
_CLAIM = "namespace-public"
_RAY, _SCHEDULING = "/apis/ray.io/v1", "/apis/scheduling.run.ai"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass
class _Run:
    lookout: Lookout
    objects: Objects
    seen: Seen = field(default_factory=Seen)


@dataclass
class Gangs:
    """The runs of one namespace."""

    plane: ControlPlane
    namespace: str
    token: Path
    _runs: dict[str, _Run] = field(default_factory=dict[str, _Run])

    def submit(self, purpose: Purpose = "training", workers: int = 2, **queue: Any) -> str:
        """Make a run; `queue` changes fields of its queue. Gives its name."""
        made = submission(
            launch(spec={"workers": workers}),
            root_run_id=str(uuid.uuid4()),
            purpose=purpose,
            cluster={
                "api_server": self.plane.address,
                "ca": {"file": str(self.plane.ca)},
                "token": {"file": str(self.token)},
                "namespace": self.namespace,
                "nodes": {**_SHAPE, "network_devices": None},
                "queues": {purpose: {"grace_seconds": GRACE_SECONDS, **queue}},
            },
        )
        api = connect(made.cluster)
        lookout = Lookout(api, made)
        run = self._runs[made.name] = _Run(lookout, Objects(api, made, lookout))
        run.objects.make(rayjob(made))
        return made.name

    def look(self, of: str) -> Observed:
        """One look at a run, which remembers the looks before."""
        return self._look(of)[0]

    def state(self, of: str) -> State:
        """Where a run is, as its page would say it."""
        return state_of(*self._look(of))

    def reaches(self, of: str, phase: str, seconds: float = 60) -> State:
        """The state of a run once it is in that phase, or the last one when time is up."""
        states: list[State] = []

        def there() -> bool:
            states.append(self.state(of))
            return states[-1].phase == phase

        eventually(there, seconds)
        return states[-1]

    def remove(self, of: str) -> None:
        """What a client does with a run that is over, or that nobody wants any more.

        Raises:
            RunFailed: something of it is left.
        """
        self._runs.pop(of).objects.remove(within_seconds=60)

    def remove_all(self) -> None:
        """Remove every run.

        Raises:
            RunFailed: as `remove`.
            RuntimeError: the client calls a run gone, and something of it is left.
        """
        for name in [*self._runs]:
            self.remove(name)
            if not eventually(lambda name=name: not self.left(name)):
                raise RuntimeError(f"Of {name} there is left: {', '.join(self.left(name))}")

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
            for one in self.plane.admin.items(f"{base}/namespaces/{self.namespace}/{kind}")
            if of in one["metadata"]["name"]
        ]

    def _look(self, of: str) -> tuple[Observed, Sequence[Mapping[str, Any]]]:
        run = self._runs[of]
        observed, queues = run.lookout.look(run.seen)
        run.seen = observed.remembered()
        return observed, queues


@contextlib.contextmanager
def gangs(plane: ControlPlane, folder: Path) -> Generator[Gangs]:
    """A namespace of its own on two nodes of eight GPUs; everything is removed afterwards.

    Raises:
        Refused: the server did not take something of it.
        RunFailed: a run left something behind.
    """
    namespace = f"training-{uuid.uuid4().hex[:8]}"
    admin = plane.admin
    path = f"/api/v1/namespaces/{namespace}"
    admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = factory_account(plane, namespace)
    token = folder / f"{namespace}.token"
    token.write_text(account.token())
    _let_see_queues(account)
    _make_volume(admin, namespace)
    for name in NODES:
        add_node(admin, name)
    try:
        with (
            an_address() as address,
            dashboard(address, port=PORT) as told,
            playing(admin, namespace, told),
        ):
            try:
                made = Gangs(plane, namespace, token)
                yield made
                made.remove_all()
            finally:  # while its pods are still played, so that they end
                admin.delete(path)
                eventually(lambda: not admin.exists(path), 60)
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            admin.delete(f"{_RBAC}/{kind}/{namespace}")
        admin.delete(f"/api/v1/persistentvolumes/{namespace}")
        for name in NODES:
            remove_node(admin, name)


def _let_see_queues(account: Account) -> None:
    """Queues are the cluster's, so that a role of the namespace cannot grant them."""
    name = account.namespace
    admin = account.plane.admin
    see = {"apiGroups": ["scheduling.run.ai"], "resources": ["queues"], "verbs": ["get"]}
    admin.create(f"{_RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [see]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name}
    binding: Object = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    admin.create(f"{_RBAC}/clusterrolebindings", binding)


def bound(pods: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """The nodes of the pods that have one."""
    return [node for pod in pods or () if (node := pod["spec"].get("nodeName"))]


def staying(pods: Sequence[Mapping[str, Any]] | None) -> set[str]:
    """The names of the pods that have not been told to end."""
    kept = (pod["metadata"] for pod in pods or ())
    return {one["name"] for one in kept if "deletionTimestamp" not in one}


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
