"""The file of a cluster of the tests whose pods are played."""

from pathlib import Path
from typing import Any

from factory.control.clusters import Kubernetes
from tests.cluster.access import Account
from tests.control.a_cluster import a_cluster


def played_cluster(account: Account, token: Path, **changes: Any) -> Kubernetes:
    """Two nodes of the namespace of that account, whose token is written to that file."""
    token.write_text(account.token())
    fields: dict[str, Any] = {
        "api_server": account.plane.address,
        "ca": {"file": str(account.plane.ca)},
        "token": {"file": str(token)},
        "namespace": account.namespace,
        "scheduler": "default",
        "multi_node_without_gang": True,
        "nodes": {"count": 2, "cpus": 60, "memory_gib": 500, "network_devices": None},
        "tree": {
            "public": {"claim": None, "host_path": "/srv/public"},
            "private": {"claim": None, "host_path": "/srv/private"},
        },
        "pod_security": "privileged",
        "queues": {"training": {"priority_class": None}},
        "grace_seconds": 5,
    }
    return a_cluster(**fields | changes)
