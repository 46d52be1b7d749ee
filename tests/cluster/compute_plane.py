"""A compute plane as helm makes it on an API server, and the factory as it is there."""

import base64
import contextlib
import uuid
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from factory.control.clusters import Kubernetes
from tests.cluster.api import Api, Object, Refused, eventually
from tests.cluster.control_plane import ControlPlane
from tests.cluster.helm import COMPUTE_PLANE, Helm
from tests.control.a_cluster import a_cluster

PURPOSES = ("training", "smoke", "probe")
NODES = {"count": 2, "cpus": 64, "memory_gib": 512, "network_devices": None}
STORAGE: dict[str, Any] = {
    tree: {"capacity": "1Ti", "source": {"nfs": {"server": "files.example", "path": f"/{tree}"}}}
    for tree in ("public", "private")
}
_CORE = "/api/v1"


@dataclass(frozen=True)
class ComputePlane:
    """One release of the chart."""

    plane: ControlPlane
    helm: Helm
    folder: Path
    cluster: Kubernetes
    release: str
    home: str
    """The Kubernetes namespace of the release."""

    @property
    def namespace(self) -> str:
        """The Kubernetes namespace of the runs."""
        return self.cluster.namespace

    @property
    def core(self) -> str:
        """Where its core objects are."""
        return f"{_CORE}/namespaces/{self.namespace}"

    @property
    def api(self) -> Api:
        """The server as the holder of the chart's token sees it."""
        return Api(
            self.plane.address, self.plane.ca, Path(self.cluster.token.file or "").read_text()
        )

    def install(self, **own: Any) -> None:
        """Install it, or change it; `own` is what only the chart needs.

        Raises:
            HelmFailed: helm or the server refused.
        """
        fields = self.cluster.model_dump(mode="json", exclude_unset=True)
        parent = {"parent": f"factory-{self.namespace}", **own.pop("shares", {})}
        own = {"plane": {"shares": parent, **own}}
        files = {f"{self.cluster.name}.yaml": fields, "plane.yaml": own}
        for name, content in files.items():
            (self.folder / name).write_text(yaml.safe_dump(content))
        values = [f"--values={self.folder / name}" for name in files]
        where = ("--namespace", self.home)
        self.helm("upgrade", "--install", self.release, COMPUTE_PLANE, *where, *values)

    def take_token(self) -> None:
        """Put the token of its Secret where the file of the cluster says that it is."""
        path = f"{_CORE}/namespaces/{self.home}/secrets/factory-token"
        data: Object | None = eventually(lambda: self.plane.admin.get(path).get("data"))
        assert data is not None, "nobody has put a token into the Secret"
        Path(self.cluster.token.file or "").write_text(base64.b64decode(data["token"]).decode())

    def wait_for_policy(self) -> None:
        """Wait until the server holds the policy of the trees; a new one takes it a moment."""
        pod = {
            "spec": {
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "main",
                        "image": "none.example/none",
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
                "volumes": [{"name": "none", "persistentVolumeClaim": {"claimName": "of-nobody"}}],
            }
        }

        def holds() -> bool:
            try:
                self.dry_run(pod)
            except Refused as refused:
                return "may mount the claims" in str(refused)
            return False

        assert eventually(holds, seconds=120), "the policy of the trees lets a pod through"

    def wait_for_quota(self, pods: str) -> None:
        """Wait until the server counts what the quota bounds; until then it makes nothing."""
        path = f"{self.core}/resourcequotas/factory"
        wanted = {"pods": pods, "count/rayjobs.ray.io": "200"}

        def counted() -> bool:
            status = self.plane.admin.get(path).get("status", {})
            known = status.get("hard", {}).items() >= wanted.items()
            return known and status.get("used", {}).keys() >= wanted.keys()

        assert eventually(counted, seconds=90), self.plane.admin.get(path)

    def uninstall(self) -> None:
        """Take away what there is of it, and wait until the namespace of the runs is gone.

        Raises:
            HelmFailed: as `install`.
        """
        self.helm("uninstall", self.release, "--namespace", self.home, "--ignore-not-found")
        namespace = f"{_CORE}/namespaces/{self.namespace}"
        assert eventually(lambda: not self.plane.admin.exists(namespace), seconds=60)

    def dry_run(self, pod: Object) -> Object:
        """The pod as the server would make it.

        Raises:
            Refused: the server would not.
        """
        named = {**pod, "metadata": {"name": "tried", **pod.get("metadata", {})}}
        return self.plane.admin.create(f"{self.core}/pods?dryRun=All", named)


@contextlib.contextmanager
def compute_plane(
    plane: ControlPlane, helm: Helm, folder: Path, **changes: Any
) -> Generator[ComputePlane]:
    """A release that is not installed yet, with names of its own; all is gone afterwards."""
    number = uuid.uuid4().hex[:8]
    names = {purpose: f"{purpose}-{number}" for purpose in PURPOSES}
    fields = {
        "api_server": plane.address,
        "ca": {"file": str(plane.ca)},
        "token": {"file": str(folder / "token")},
        "namespace": f"runs-{number}",
        "queues": {one: {"name": name, "priority_class": name} for one, name in names.items()},
        **changes,
    }
    helm = replace(helm, kubeconfig=plane.kubeconfig)
    made = ComputePlane(
        plane, helm, folder, a_cluster(**fields), f"plane-{number}", f"home-{number}"
    )
    home = f"{_CORE}/namespaces/{made.home}"
    plane.admin.create(f"{_CORE}/namespaces", {"metadata": {"name": made.home}})
    try:
        yield made
    finally:
        made.uninstall()
        plane.admin.delete(home)
        assert eventually(lambda: not plane.admin.exists(home), seconds=60)
