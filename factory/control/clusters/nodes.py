"""Nodes: what one holds, and what the pods of a run may ask for."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from factory.control.clusters.common import Part
from factory.control.clusters.words import Device, LabelKey, Labels, LabelValue, ObjectName

type Cpus = Annotated[float, Field(ge=0.1, le=4096, allow_inf_nan=False)]
type Gibibytes = Annotated[float, Field(ge=0.25, le=2**20, allow_inf_nan=False)]


class Topology(Part, frozen=True):
    """How far apart the nodes of a run may lie, in terms of one of KAI's Topology objects."""

    name: ObjectName = Field(description="The Topology object.")
    levels: list[LabelKey] = Field(
        min_length=1, description="Its labels of nodes, from the widest level to the narrowest."
    )
    required: LabelKey | None = Field(
        default=None, description="The level within which all of a run must lie; else it waits."
    )
    preferred: LabelKey | None = Field(
        default=None, description="The level within which a run lies where it can."
    )

    @model_validator(mode="after")
    def _names_its_levels(self) -> Self:
        for field in ("required", "preferred"):
            level = getattr(self, field)
            if level is not None and level not in self.levels:
                raise ValueError(f"{field} is {level}, which is none of its levels")
        if self.required is None and self.preferred is None:
            raise ValueError("write `required`, `preferred` or both: without them it says nothing")
        return self


class Nodes(Part, frozen=True):
    """The nodes that workers run on, all alike."""

    count: int = Field(ge=1, description="How many there are.")
    gpus: int = Field(ge=0, le=16, description="GPUs of each; a worker takes all of them.")
    gpu_product: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        description="Value of their label `nvidia.com/gpu.product`: `NVIDIA-H100-80GB-HBM3`.",
    )
    gpu_resource: Device = Field(
        default="nvidia.com/gpu", description="What the device plugin calls a GPU."
    )
    cpus: Cpus = Field(description="CPUs of each that pods may have (allocatable).")
    memory_gib: Gibibytes = Field(description="Memory of each that pods may have (allocatable).")
    shared_memory_gib: Gibibytes | None = Field(
        default=None, description="Of it, for /dev/shm of a worker; a quarter if unset."
    )
    scratch_gib: Gibibytes = Field(default=50, description="Disk for /tmp of a pod.")
    locked_memory: bool = Field(
        default=False,
        description="Whether RDMA needs memory that stays in place: the pods then raise their "
        "limit, which the container runtime must allow (`LimitMEMLOCK=infinity`), or end at once.",
    )
    network_devices: dict[Device, Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        default_factory=dict[str, int],
        description="Devices of each node, as their plugin calls them: {'rdma/hca_a': 8}.",
    )
    network_attachments: list[ObjectName] = Field(
        default_factory=list[str], max_length=32, description="Multus networks of a worker."
    )
    labels: Labels = Field(
        default_factory=dict[str, str], description="What their labels must be, beside the product."
    )
    topology: Topology | None = Field(default=None, description="How far apart a run may lie.")

    @model_validator(mode="after")
    def _counts_gpus_once(self) -> Self:
        if self.gpu_resource in self.network_devices:
            raise ValueError(f"network_devices has {self.gpu_resource}, which `gpus` says already")
        return self


class Head(Part, frozen=True):
    """The pod without GPUs that holds Ray's head and the driver."""

    cpus: Cpus = Field(default=2, description="Its CPUs.")
    memory_gib: Gibibytes = Field(default=8, ge=1, description="Its memory.")
    labels: Labels = Field(
        default_factory=dict[str, str],
        description="Nodes that it runs on. If unset it shares a node with a worker, and every "
        "worker asks for that much less.",
    )


class Toleration(Part, frozen=True):
    """A taint of the nodes that pods of a run may ignore."""

    key: LabelKey | None = Field(default=None, description="The taint; all of them if unset.")
    operator: Literal["Equal", "Exists"] = Field(
        default="Exists", description="Whether its value counts."
    )
    value: LabelValue | None = Field(default=None, description="Its value, for `Equal`.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="What it does; anything if unset."
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.operator == "Equal") != (self.value is not None):
            raise ValueError("write `operator: Equal` with a value, or `Exists` without one")
        if self.operator == "Equal" and self.key is None:
            raise ValueError("`Equal` needs the key whose value counts")
        return self
