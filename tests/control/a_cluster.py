"""A Kubernetes cluster's file, with some of its fields changed."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from factory.control.clusters import Kubernetes, cluster

FILE: dict[str, Any] = {
    "name": "gpu-west",
    "kind": "kubernetes",
    "profile": "h100",
    "api_server": "https://gpu-west.example:6443",
    "ca": {"file": "/etc/factory/gpu-west/ca.crt"},
    "token": {"file": "/etc/factory/gpu-west/token"},
    "namespace": "training",
    "scheduler": "kai",
    "queues": {
        "training": {"name": "training", "priority_class": "training"},
        "smoke": {"name": "smoke"},
        "probe": {"name": "probe", "priority_class": "probe", "nodes": 2, "grace_seconds": 5},
    },
    "nodes": {
        "count": 4,
        "gpus": 8,
        "gpu_product": "NVIDIA-H100-80GB-HBM3",
        "cpus": 180,
        "memory_gib": 1900,
        "network_devices": {"rdma/hca_shared": 8},
    },
    "tree": {
        "public": {"claim": "namespace-public"},
        "private": {"claim": "namespace-private"},
    },
}

OWN_SCHEDULER = {"scheduler": "default"}
CPU = {"profile": "cpu", "nodes": {"gpus": 0, "gpu_product": None, "network_devices": {}}}


def file(**changes: Any) -> dict[str, Any]:
    """The fields of the file; a change of a part changes that part's own fields."""
    return _merged(FILE, changes)


def a_cluster(**changes: Any) -> Kubernetes:
    """The cluster that the file declares."""
    return Kubernetes.model_validate(file(**changes))


def read(folder: Path, **changes: Any) -> Kubernetes:
    """The same, by way of a file."""
    fields = file(**changes)
    (folder / f"{fields['name']}.yaml").write_text(yaml.safe_dump(fields))
    found = cluster(fields["name"], folder)
    assert isinstance(found, Kubernetes)
    return found


def _merged(fields: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = deepcopy(fields)
    for name, value in changes.items():
        before = merged.get(name)
        both = isinstance(before, dict) and isinstance(value, dict)
        merged[name] = _merged(before, value) if both else deepcopy(value)
    return {name: value for name, value in merged.items() if value is not None}
