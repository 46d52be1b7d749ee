"""`kind: kubernetes`: a cluster where KubeRay makes a Ray cluster for each run."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from factory.control.clusters.access import (
    IN_CLUSTER,
    Authority,
    Dashboard,
    Token,
    checked_api_server,
)
from factory.control.clusters.common import Cluster, Part
from factory.control.clusters.nodes import Head, Nodes, Toleration
from factory.control.clusters.queues import Queue
from factory.control.clusters.volumes import Mount, Tree
from factory.control.clusters.words import DnsLabel, ObjectName, Variables
from factory.spec import Purpose

SUBMITTER_CPUS, SUBMITTER_GIB = 1.0, 1.0
"""The most that KubeRay gives its submitter, beside the head (`sidecar`)."""

LEAST_CPUS, LEAST_GIB = 0.2, 1.0
"""What a worker needs to start at all: KubeRay's init container has the first, Ray the second."""

type Scheduler = Literal["kai", "default"]
type PodSecurity = Literal["restricted", "baseline", "privileged"]
type Id = Annotated[int, Field(ge=1, le=2**31 - 1)]


class RunAs(Part, frozen=True):
    """Whose files the pods of a run write; never root's."""

    user: Id = Field(default=1000, description="User id.")
    group: Id = Field(default=1000, description="Group id.")
    groups: list[Id] = Field(
        default_factory=list[int], description="More groups, by which the trees can be read."
    )


class Limits(Part, frozen=True):
    """The most that one run may ask for."""

    nodes: int | None = Field(default=None, ge=1, description="Nodes of one run.")
    run_hours: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="`run_limit_hours` of one run."
    )


class Kubernetes(Cluster, frozen=True):
    """A cluster with KubeRay."""

    kind: Literal["kubernetes"] = Field(description="A Ray cluster for each run, by KubeRay.")
    api_server: str | None = Field(
        default=None, description="`https://HOST:PORT`; needless with `token: {in_cluster: true}`."
    )
    ca: Authority | None = Field(
        default=None, description="Its certificate authority; those of this machine if unset."
    )
    token: Token = Field(description="Where the token is read from; never a token.")
    namespace: DnsLabel = Field(description="The Kubernetes namespace of the runs.")
    dashboard: Dashboard = Field(default=Dashboard(), description="How Ray's dashboard is reached.")
    scheduler: Scheduler = Field(
        description="`kai` places all pods of a run or none; `default` has no gangs."
    )
    multi_node_without_gang: bool = Field(
        default=False,
        description="With `scheduler: default`: let runs of several nodes hold some while they "
        "wait for the others, which can block two runs for ever.",
    )
    queues: dict[Purpose, Queue] = Field(
        min_length=1, description="The queue of each purpose: training, smoke, probe."
    )
    nodes: Nodes = Field(description="What a worker's node holds.")
    head: Head = Field(default=Head(), description="The pod of Ray's head and the driver.")
    tree: Tree = Field(description="The namespace in the pods.")
    mounts: list[Mount] = Field(
        default_factory=list[Mount], description="What else every pod sees, read-only."
    )
    pull_secrets: list[ObjectName] = Field(
        default_factory=list[str], description="Secrets that the image is pulled with."
    )
    tolerations: list[Toleration] = Field(
        default_factory=list[Toleration], description="Taints of the nodes that do not count."
    )
    pod_security: PodSecurity = Field(
        default="restricted", description="What the Kubernetes namespace admits."
    )
    run_as: RunAs = Field(default=RunAs(), description="Whose files the pods write.")
    environment: Variables = Field(
        default_factory=dict[str, str],
        description="Variables of every container, for instance the network's: NCCL_SOCKET_IFNAME.",
    )
    limits: Limits = Field(default=Limits(), description="The most that one run may ask for.")

    @property
    def address(self) -> str:
        """The API server, as it is put before a path."""
        return self.api_server or IN_CLUSTER

    def dashboard_address(self, ray_cluster: str) -> str:
        """Where the dashboard of that Ray cluster answers."""
        return self.dashboard.address(self.address, self.namespace, ray_cluster)

    def beside_worker(self, queue: Queue) -> tuple[float, float]:
        """CPUs and GiB that a worker leaves to the head, which may lie on its node."""
        if self.head.labels:
            return 0.0, 0.0
        sidecar = queue.submission == "sidecar"
        return (
            self.head.cpus + (SUBMITTER_CPUS if sidecar else 0.0),
            self.head.memory_gib + (SUBMITTER_GIB if sidecar else 0.0),
        )

    @field_validator("api_server")
    @classmethod
    def _is_an_api_server(cls, address: str | None) -> str | None:
        return None if address is None else checked_api_server(address)

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if self.api_server is None and not self.token.in_cluster:
            raise ValueError("api_server is missing: write `api_server: https://HOST:PORT`")
        return self

    @model_validator(mode="after")
    def _profile_fits_nodes(self) -> Self:
        if self.profile == "cpu" and self.nodes.gpus:
            raise ValueError(
                f"profile is cpu and nodes.gpus is {self.nodes.gpus}: the cpu profile refuses to "
                "start where there is a GPU. Write `profile: h100`, or `gpus: 0`"
            )
        if self.profile == "h100" and not self.nodes.gpus:
            raise ValueError("profile is h100 and nodes.gpus is 0: write how many each node has")
        return self

    @model_validator(mode="after")
    def _pods_are_admitted(self) -> Self:
        volumes = [self.tree.public, self.tree.private, *self.mounts]
        paths = [volume.host_path for volume in volumes if volume and volume.host_path]
        if paths and self.pod_security != "privileged":
            raise ValueError(
                f"host_path {paths[0]} is admitted with `pod_security: privileged` only, and it is "
                f"{self.pod_security}. Use a claim"
            )
        sidecars = [name for name, queue in self.queues.items() if queue.submission == "sidecar"]
        if sidecars and self.pod_security == "restricted":
            raise ValueError(
                f"queues.{sidecars[0]}.submission is sidecar, whose container KubeRay makes with "
                "no security context: that needs `pod_security: baseline`. Use `http`"
            )
        return self

    @model_validator(mode="after")
    def _mounts_are_apart(self) -> Self:
        paths: set[str] = set()
        for mount in self.mounts:
            mount.refuse_beside(self.tree)
            if mount.path in paths:
                raise ValueError(f"mounts has {mount.path} twice; a path shows one volume")
            paths.add(mount.path)
        return self

    @model_validator(mode="after")
    def _a_worker_fits(self) -> Self:
        for purpose, queue in self.queues.items():
            cpus, gib = self.beside_worker(queue)
            if self.nodes.cpus - cpus < LEAST_CPUS or self.nodes.memory_gib - gib < LEAST_GIB:
                raise ValueError(
                    f"a node has {self.nodes.cpus:g} CPUs and {self.nodes.memory_gib:g} GiB, of "
                    f"which the head takes {cpus:g} and {gib:g} (queue {purpose}): nothing is left "
                    "for a worker. Lower `head`, or give it `labels` of nodes of its own"
                )
        shared = self.nodes.shared_memory_gib
        if shared is not None and shared >= self.nodes.memory_gib - max(
            self.beside_worker(queue)[1] for queue in self.queues.values()
        ):
            raise ValueError(
                f"nodes.shared_memory_gib is {shared:g}, which leaves a worker no other memory"
            )
        return self

    @model_validator(mode="after")
    def _scheduler_can(self) -> Self:
        if self.scheduler == "default" and self.nodes.topology is not None:
            raise ValueError("nodes.topology is KAI's, and scheduler is default; remove one")
        if self.scheduler == "kai" and self.multi_node_without_gang:
            raise ValueError("multi_node_without_gang is for `scheduler: default`; KAI has gangs")
        return self
