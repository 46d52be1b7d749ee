"""What the factory's token must be allowed on a cluster, and nothing more."""

from collections.abc import Iterator
from dataclasses import dataclass

from factory.control.clusters import Kubernetes


@dataclass(frozen=True)
class Right:
    """Verbs on one resource of the Kubernetes namespace of the runs."""

    group: str
    resource: str
    """With its subresource: `services/proxy`."""

    verbs: tuple[str, ...]


def needed(cluster: Kubernetes) -> Iterator[Right]:
    """What submitting, following and ending runs takes: each verb is asked, and nothing watches."""
    yield Right("ray.io", "rayjobs", ("get", "list", "create", "delete"))
    # One that lost its RayJob holds nodes.
    yield Right("ray.io", "rayclusters", ("get", "list", "delete"))
    if cluster.scheduler == "kai":
        yield Right("scheduling.run.ai", "podgroups", ("get",))
    yield Right("", "pods", ("list",))
    yield Right("", "pods/log", ("get",))
    yield Right("", "events", ("list",))
    yield Right("", "secrets", ("get", "create", "delete"))
    if cluster.dashboard.route == "service_proxy":
        yield Right("", "services/proxy", ("get", "create"))
