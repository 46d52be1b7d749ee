"""Clusters: where a run can go, read from `definitions/clusters/*.yaml`.

Two kinds. `local` is a Ray cluster of the run's own on this machine. `kubernetes` is a cluster with
KubeRay: `access` (its API server), `queues`, `nodes` (what a run may ask for) and `volumes` (what
it sees) are parts of its file. `reading` turns files into clusters by way of `fields`, `schema` the
model into a JSON schema. Nothing here talks to a server.
"""

from factory.control.clusters.common import Cluster
from factory.control.clusters.kubernetes import Kubernetes
from factory.control.clusters.local import Local
from factory.control.clusters.reading import FOLDER, Declared, cluster, declared

__all__ = ["FOLDER", "Cluster", "Declared", "Kubernetes", "Local", "cluster", "declared"]
