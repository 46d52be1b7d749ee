"""What the factory's token must be allowed on a cluster, and nothing more."""

from collections.abc import Iterator
from dataclasses import dataclass

from factory.control.clusters import Kubernetes

_READ = ("get", "list", "watch")


@dataclass(frozen=True)
class Right:
    """Verbs on one resource of the Kubernetes namespace of the runs."""

    group: str
    resource: str
    """With its subresource: `services/proxy`."""

    verbs: tuple[str, ...]


def needed(cluster: Kubernetes) -> Iterator[Right]:
    """What submitting, following and ending runs takes."""
    yield Right("ray.io", "rayjobs", (*_READ, "create", "delete"))
    yield Right("ray.io", "rayclusters", (*_READ, "delete"))  # one that lost its RayJob holds nodes
    if cluster.scheduler == "kai":
        yield Right("scheduling.run.ai", "podgroups", _READ)
    yield Right("", "pods", _READ)
    yield Right("", "pods/log", ("get",))
    yield Right("", "events", _READ)
    yield Right("", "secrets", ("get", "create", "delete"))
    if cluster.dashboard.route == "service_proxy":
        yield Right("", "services/proxy", ("get", "create", "delete"))
