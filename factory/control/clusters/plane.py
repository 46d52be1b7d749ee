"""`plane`: what only the chart of a compute plane needs, beside the cluster's own file.

The factory does not read it. It is a model so that the chart's values have a schema, and so that
its defaults and descriptions stand once.
"""

from typing import Annotated

from pydantic import Field

from factory.control.clusters.common import Part
from factory.control.clusters.kubernetes import Kubernetes
from factory.control.clusters.sources import Source
from factory.control.clusters.words import DnsLabel, ObjectName

_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_WORD = "[0-9a-fA-F]{1,4}"
_SHORTENED = "|".join(
    f"({_WORD}(:{_WORD}){{0,{before}}})?::({_WORD}(:{_WORD}){{0,{5 - before}}})?"
    for before in range(6)
)
"""A row of zeros is left out; up to six words stand before it, and no more than seven in all."""
_OF_4 = rf"({_BYTE}\.){{3}}{_BYTE}/(3[0-2]|[12]?[0-9])"
_WHOLE = f"({_WORD}:){{7}}({_WORD}|:)|::({_WORD}:){{6}}{_WORD}"
_OF_6 = f"({_WHOLE}|{_SHORTENED})/(12[0-8]|1[01][0-9]|[1-9]?[0-9])"
type Cidr = Annotated[str, Field(pattern=f"^({_OF_4}|{_OF_6})$")]
type Port = Annotated[int, Field(ge=1, le=65_535)]
type Quantity = Annotated[str, Field(pattern=r"^[0-9]+([KMGTPE]i?)?$")]
type Priority = Annotated[int, Field(ge=1, le=99)]
"""From 100 on KAI takes a pod for one that cannot be preempted."""


class Account(Part, frozen=True):
    """Who the factory is on this cluster. No pod of a run can name it: it lies elsewhere."""

    name: ObjectName = Field(default="factory", description="The service account.")
    namespace: DnsLabel | None = Field(
        default=None, description="Where it is; the namespace of the release if unset."
    )
    create: bool = Field(
        default=True, description="Whether to make it; else it is there, with its own tokens."
    )
    token_secret: bool = Field(
        default=True,
        description="Whether to make a Secret NAME-token with a token that does not end. Without "
        "it, ask for tokens that do: `kubectl create token NAME --duration 24h`.",
    )


class Share(Part, frozen=True):
    """What the queue of a purpose gets, and what its runs give way to."""

    priority: Priority = Field(
        description="Value of its PriorityClass, and of the queue among its siblings. Kubernetes "
        "changes no class: for another value give it another name, in `queues`."
    )
    quota_nodes: int | None = Field(
        default=None,
        ge=0,
        description="Nodes that nobody takes from it. If unset: all for training, those of one "
        "run for smoke, none for probe.",
    )
    limit_nodes: int | None = Field(
        default=None, ge=1, description="Most nodes of all its runs together; no limit if unset."
    )
    weight: int = Field(default=1, ge=0, description="Its part of what no quota holds.")
    protected_minutes: int = Field(
        default=0, ge=0, description="How long KAI leaves a run alone once it has started."
    )


class Shares(Part, frozen=True):
    """KAI's queues of this cluster: one parent, and a leaf for each purpose in `queues`."""

    parent: ObjectName = Field(default="factory", description="The queue above the three.")
    training: Share = Field(
        default=Share(priority=80, protected_minutes=15), description="The queue of training."
    )
    smoke: Share = Field(default=Share(priority=50), description="The queue of smoke tests.")
    probe: Share = Field(
        default=Share(priority=10),
        description="The queue of bandwidth probes: whoever comes, goes.",
    )


class Storage(Part, frozen=True):
    """A volume of a tree, whose data is there already. Nothing here ever deletes it."""

    capacity: Quantity = Field(description="Its size: 100Ti. Nobody enforces it on shared storage.")
    source: Source = Field(
        description="Where it is, as a PersistentVolume says it, with the tree as its root: "
        "{nfs: {server: HOST, path: /exports/namespace/public}}, or {csi: ...}. Neither tree may "
        "lie in the other.",
    )
    mount_options: list[str] = Field(
        default_factory=list[str], description="Options of its mount: [nconnect=8]."
    )


class Storages(Part, frozen=True):
    """Volumes and claims to make, under the names of `tree`; a claim left out is there already."""

    public: Storage | None = Field(default=None, description="The volume of `tree.public`.")
    private: Storage | None = Field(default=None, description="The volume of `tree.private`.")


class Egress(Part, frozen=True):
    """Somewhere that pods of runs may connect to."""

    cidr: Cidr = Field(description="The addresses: 10.20.0.0/16.")
    ports: list[Port] = Field(
        default_factory=list[int], description="The TCP ports; all if there are none."
    )


class Network(Part, frozen=True):
    """NetworkPolicies. They hold where the network plugin enforces them, and only there."""

    create: bool = Field(default=True, description="Whether to make them.")
    dashboard_cidrs: list[Cidr] = Field(
        default=["0.0.0.0/0", "::/0"],
        description="From where Ray's dashboard is reached: the API server's own addresses, or the "
        "proxy's of `dashboard.template`. Narrow it; every run also has a Ray token of its own.",
    )
    operator_namespace: DnsLabel = Field(
        default="kai-scheduler",
        description="Where KubeRay's operator is, which submits to the dashboard.",
    )
    dns_namespace: DnsLabel = Field(default="kube-system", description="Where names are resolved.")
    dns_cidrs: list[Cidr] = Field(
        default_factory=list[str], description="Resolvers outside of pods: [169.254.20.10/32]."
    )
    egress: list[Egress] = Field(
        default_factory=list[Egress], description="What else runs may connect to."
    )


class Quota(Part, frozen=True):
    """How many objects the namespace holds: it stops what runs away, the queues share out nodes."""

    pods: int = Field(default=2000, ge=1, description="Pods, waiting ones too.")
    rayjobs: int = Field(default=200, ge=1, description="Runs, waiting and just ended ones too.")
    gpus: int | None = Field(
        default=None,
        ge=0,
        description="GPUs that all pods together ask for. A gang waits as pods, so a number below "
        "what is ever asked for keeps KAI from seeing the gang: leave it unset.",
    )


class Plane(Part, frozen=True):
    """What only the chart needs."""

    create_namespace: bool = Field(
        default=True, description="Whether to make the Kubernetes namespace; else it is there."
    )
    create_topology: bool = Field(
        default=False, description="Whether to make the Topology of `nodes.topology`."
    )
    pod_security_version: str = Field(
        default="latest",
        pattern=r"^(latest|v1\.[0-9]+)$",
        description="Of which Kubernetes `pod_security` is meant: v1.34.",
    )
    account: Account = Field(default=Account(), description="Who the factory is on this cluster.")
    shares: Shares = Field(default=Shares(), description="Who gets how much.")
    storage: Storages = Field(default=Storages(), description="Volumes to make.")
    network: Network = Field(default=Network(), description="Who reaches whom.")
    quota: Quota = Field(default=Quota(), description="How much there may be.")


class Values(Kubernetes, frozen=True):
    """The values of the chart: the file of a cluster as it is, and `plane`."""

    plane: Plane = Field(default=Plane(), description="What only the chart needs.")
