"""One launch in real containers of two nodes, with all that a fault may take hold of.

The head has one node and its worker the other. The image is in `light_image`, what every launch has
in `under_way`.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import dagster as dg

from factory.control.clusters import Kubernetes
from factory.settings import Settings
from tests.cluster import inside
from tests.cluster.api import Object
from tests.cluster.images import Image
from tests.cluster.inside import Process
from tests.cluster.kubelets import Machines, Node
from tests.cluster.launching import Launcher
from tests.cluster.light_image import SYSTEM, VARIABLES, light_image
from tests.cluster.sites import Site, site
from tests.cluster.under_way import UnderWay

type Role = Literal["head", "worker"]

_NOTICES_SOON = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "5",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "30",
}
"""Ray takes a node for dead in a third of a minute, not in one."""


@dataclass(kw_only=True)
class SceneInContainers(UnderWay):
    """One launch whose pods are real."""

    machines: Machines
    moment_seconds: float = 240.0
    end_seconds: float = 420.0
    killed: set[str] = field(default_factory=set[str])
    """Drivers whose heads live on, and tell what they have printed."""
    beheaded: set[str] = field(default_factory=set[str])
    """Drivers whose heads were struck, whether or not they came to their own ends."""

    @property
    def where_told(self) -> Path:
        """In what the pods see."""
        return self.root / "public"

    def has_ended(self) -> bool:
        """Its driver has ended."""
        return bool(self._marked("ended"))

    def drivers(self) -> int:
        """How many were started; of some no more came than that they were kept out."""
        return len(self.said().keys() | self._marked("fenced"))

    def died_with_their_heads(self) -> set[str]:
        """The names of those whose head was struck, or that never came to their ends."""
        return self.beheaded | set(self.said()) - self._marked("ended") - self.killed

    def pod(self, role: Role) -> Object:
        """The pod of that role, the youngest."""
        of = [p for p in self.pods() if p["metadata"]["labels"]["ray.io/node-type"] == role]
        return max(of, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def node(self, role: Role) -> Node:
        """Where the pods of that role are."""
        return self.machines.nodes[("head", "worker").index(role)]

    def processes(self, role: Role) -> list[Process]:
        """What runs in that pod."""
        return inside.processes(self._cluster, self.pod(role))

    def set_network(self, pod: Object, state: Literal["up", "down"]) -> None:
        """Cut the network of one pod, or mend it."""
        inside.set_network(self._cluster, pod, state)

    @property
    def _cluster(self) -> str:
        return self.machines.plane.folder.name

    def _marked(self, what: str) -> set[str]:
        return {path.name.removeprefix(f"{what}-") for path in self.root.rglob(f"{what}-*")}


@dataclass
class Machinery:
    """Two nodes, a site on them and Dagster's own storage, for many scenes."""

    machines: Machines
    here: Site
    image: Image
    instance: dg.DagsterInstance
    folder: Path
    scenes: int = 0

    @contextmanager
    def scene(self, random: Random) -> Generator[SceneInContainers]:
        """One launch that has not begun yet."""
        self.scenes += 1
        root = self.here.root / f"scene-{self.scenes}"
        for tree in ("public", "private"):
            (root / tree).mkdir(parents=True)
        scene = SceneInContainers(
            launcher=self._launcher(root),
            admin=self.machines.plane.admin,
            namespace=self.here.cluster["namespace"],
            root=root,
            random=random,
            machines=self.machines,
        )
        try:
            yield scene
        finally:
            scene.close()

    def _launcher(self, root: Path) -> Launcher:
        settings = Settings.from_environment(
            {
                "FACTORY_ROOT": str(root),
                "FACTORY_STATE": str(self.folder / "state"),
                "DAGSTER_HOME": str(self.folder / "home"),
            }
        )
        cluster = Kubernetes.model_validate(self.here.cluster | self._fields(root))
        return Launcher(settings, self.instance, cluster, self.image.reference, grace_seconds=5.0)

    def _fields(self, root: Path) -> dict[str, Any]:
        """The head and its worker each have a node, with all that is on it."""
        on = [{"kubernetes.io/hostname": node.name} for node in self.machines.nodes]
        of_site = self.here.cluster
        return {
            "grace_seconds": 5,
            "environment": {**of_site["environment"], **VARIABLES, **_NOTICES_SOON},
            "mounts": [*of_site["mounts"], {"path": SYSTEM, "host_path": SYSTEM}],
            "head": {"cpus": 2, "memory_gib": 4, "labels": on[0]},
            "nodes": {"count": 1, "gpus": 0, "cpus": 2, "memory_gib": 4, "labels": on[1]},
            "tree": {
                "path": str(root),
                "public": {"host_path": str(root / "public")},
                "private": {"host_path": str(root / "private")},
            },
        }


@contextmanager
def machinery(
    machines: Machines, instance: dg.DagsterInstance, folder: Path
) -> Generator[Machinery]:
    """A site of its own on those machines, until the end of the block.

    `instance` is Dagster's, whose home is `home` in that folder.
    """
    with site(machines, "faults") as here:
        image = light_image(folder)
        for node in machines.nodes:
            node.add(image)
        yield Machinery(machines, here, image, instance, folder)
