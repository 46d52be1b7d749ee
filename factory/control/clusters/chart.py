"""`python -m factory.control.clusters.chart`: what the chart of a compute plane takes from here.

The schema of its values is that of a cluster's file, so the file itself is given to helm; the rules
of the factory's Role are the rights that `factory cluster check` asks for.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from factory.control.clusters.kubernetes import Kubernetes
from factory.control.clusters.plane import Values
from factory.control.kube.rights import Right, needed
from factory.settings import CHECKOUT

FOLDER = CHECKOUT / "charts" / "compute-plane"
_MADE_BY = "# Made by `python -m factory.control.clusters.chart`. Do not edit.\n"

_LEAST: dict[str, Any] = {
    "name": "least",
    "kind": "kubernetes",
    "profile": "cpu",
    "token": {"in_cluster": True},
    "namespace": "least",
    "scheduler": "default",
    "dashboard": {"route": "template", "template": "https://{service}"},
    "queues": {"training": {"name": "training"}},
    "nodes": {"count": 1, "gpus": 0, "cpus": 8, "memory_gib": 32},
    "tree": {"public": {"claim": "public"}},
}
_MORE: dict[str, dict[str, Any]] = {
    "kai": {"scheduler": "kai"},
    "service_proxy": {"dashboard": {"route": "service_proxy"}},
}
"""What a cluster can have that takes more rights, and the fields that say so."""


def schema() -> dict[str, Any]:
    """The schema of the chart's values."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **Values.model_json_schema()}


def rules() -> dict[str, list[dict[str, Any]]]:
    """Rules of a Role: what every cluster takes, and what some take more."""
    least = list(needed(Kubernetes.model_validate(_LEAST)))
    found = {"always": _rules(least)}
    for name, fields in _MORE.items():
        with_it = needed(Kubernetes.model_validate(_LEAST | fields))
        found[name] = _rules(right for right in with_it if right not in least)
    return found


def files() -> dict[Path, str]:
    """The files of the chart that are made here, and what is in them."""
    import yaml

    return {
        FOLDER / "values.schema.json": json.dumps(schema(), indent=2) + "\n",
        FOLDER / "files" / "rights.yaml": _MADE_BY + yaml.safe_dump(rules(), sort_keys=False),
    }


def _rules(rights: Iterable[Right]) -> list[dict[str, Any]]:
    return [
        {"apiGroups": [one.group], "resources": [one.resource], "verbs": list(one.verbs)}
        for one in rights
    ]


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
