"""Where a volume of a tree is: the sources of a PersistentVolume that many nodes can write to.

These and no others, with the fields that Kubernetes gives them and no others: what is written here
stands in a PersistentVolume beside the chart's own fields, and must not take their place. No
directory of a node either: a claim of such a volume is mounted whatever `pod_security` says.
"""

from pydantic import ConfigDict, Field

from factory.control.clusters.common import Part
from factory.control.clusters.words import AbsolutePath, DnsLabel, ObjectName


class Nfs(Part, frozen=True):
    """A directory that a server exports."""

    server: str = Field(pattern=r"^[-0-9A-Za-z_.:]+$", description="Its name or its address.")
    path: AbsolutePath = Field(description="The directory, which is the root of the tree.")
    read_only: bool = Field(default=False, alias="readOnly", description="For every pod.")


class SecretName(Part, frozen=True):
    """A Secret that a driver reads."""

    name: ObjectName = Field(description="The Secret.")
    namespace: DnsLabel = Field(description="Where it is.")


class Csi(Part, frozen=True):
    """A volume of a storage driver."""

    driver: ObjectName = Field(description="The driver: nfs.csi.k8s.io.")
    volume_handle: str = Field(
        alias="volumeHandle", min_length=1, description="What the driver calls the volume."
    )
    read_only: bool = Field(default=False, alias="readOnly", description="For every pod.")
    fs_type: str | None = Field(default=None, alias="fsType", description="ext4, for instance.")
    attributes: dict[str, str] = Field(
        default_factory=dict[str, str],
        alias="volumeAttributes",
        description="What else the driver must know: {server: HOST, share: /exports/public}.",
    )
    controller_publish: SecretName | None = Field(
        default=None, alias="controllerPublishSecretRef", description="To attach it."
    )
    controller_expand: SecretName | None = Field(
        default=None, alias="controllerExpandSecretRef", description="To make it larger."
    )
    node_stage: SecretName | None = Field(
        default=None, alias="nodeStageSecretRef", description="To mount it on a node."
    )
    node_publish: SecretName | None = Field(
        default=None, alias="nodePublishSecretRef", description="To mount it in a pod."
    )
    node_expand: SecretName | None = Field(
        default=None, alias="nodeExpandSecretRef", description="To make it larger on a node."
    )


class Source(Part, frozen=True):
    """One of them."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    nfs: Nfs | None = Field(default=None, description="A directory that a server exports.")
    csi: Csi | None = Field(default=None, description="A volume of a storage driver.")
