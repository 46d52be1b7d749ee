"""What of the namespace a run's pods see: access follows the run's classification.

A public run has the public tree, read-only, and in it its own directory to write to. A private run
has both trees, read-only, and its own directory in the private one. There is no other way for a
volume into a pod than the cluster's file, where the trees are volumes apart from each other.
A private run on a cluster without a private tree is refused before (`refusals`).
"""

from typing import Any

from factory.control.clusters import Kubernetes
from factory.control.clusters.volumes import Volume
from factory.errors import ClassificationError
from factory.keys import Classification
from factory.namespace import RunDirectory
from factory.namespace.runs import RUNS
from factory.spec import Launch

SCRATCH = "/tmp"  # noqa: S108  of a container of the run's own
SHARED_MEMORY = "/dev/shm"  # noqa: S108

type Pair = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""Volumes of a pod, and the mounts of its container."""


def mounts(launch: Launch, cluster: Kubernetes) -> Pair:
    """Volumes and mounts of everything but scratch space."""
    seen = _trees(launch.classification, cluster)
    volumes = [{"name": name, **_source(volume)} for name, volume in seen.items()]
    mounted = [
        {"name": name, "mountPath": f"{cluster.tree.path}/{name}", "readOnly": True}
        for name in seen
    ]
    mounted.append(
        {
            "name": launch.classification,
            "mountPath": f"{cluster.tree.path}/{launch.classification}/{RUNS}/{launch.run_id}",
            "subPath": f"{RUNS}/{launch.run_id}",
        }
    )
    for index, mount in enumerate(cluster.mounts):
        volumes.append({"name": f"mount-{index}", **_source(mount)})
        mounted.append({"name": f"mount-{index}", "mountPath": mount.path, "readOnly": True})
    return volumes, mounted


def scratch(scratch_mib: int, shared_memory_mib: int) -> Pair:
    """Volumes and mounts of what ends with the pod: the root of a container is read-only."""
    volumes: list[dict[str, Any]] = [
        {"name": "scratch", "emptyDir": {"sizeLimit": f"{scratch_mib}Mi"}},
        {
            "name": "shared-memory",
            "emptyDir": {"medium": "Memory", "sizeLimit": f"{shared_memory_mib}Mi"},
        },
    ]
    mounted: list[dict[str, Any]] = [
        {"name": "scratch", "mountPath": SCRATCH},
        {"name": "shared-memory", "mountPath": SHARED_MEMORY},
    ]
    return volumes, mounted


def refuse_links(run: RunDirectory) -> None:
    """Refuse a run directory that is reached through a link: a mount of it could lead elsewhere.

    Raises:
        ClassificationError: the directory, or one above it in the namespace, is a link.
    """
    real = run.root.resolve()
    meant = real / run.classification / RUNS / run.run_id
    if (found := run.path.resolve()) != meant:
        raise ClassificationError(
            f"{run} is reached through a link: it lies in {found}, not in {meant}. A pod that "
            "mounts it could write there. Remove the link; the factory makes the directory itself."
        )


def _trees(classification: Classification, cluster: Kubernetes) -> dict[str, Volume]:
    trees = {"public": cluster.tree.public}
    if classification == "private" and cluster.tree.private is not None:
        trees["private"] = cluster.tree.private
    return trees


def _source(volume: Volume) -> dict[str, Any]:
    """Not read-only as a whole: the run's own directory in it is written to."""
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    return {"hostPath": {"path": volume.host_path, "type": "Directory"}}
