"""`python -m factory.control.clusters.schema`: the JSON schema of a cluster's file.

Editors check a file against it, and the chart that takes the same file as its values does too.
"""

import json
import sys
from typing import Any

from factory.control.clusters.kubernetes import Kubernetes
from factory.control.clusters.reading import SCHEMA


def schema(kind: str = "") -> dict[str, Any]:
    """The schema of files of that kind, or of any kind."""
    return Kubernetes.model_json_schema() if kind == "kubernetes" else SCHEMA.json_schema()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(*sys.argv[1:2]), indent=2) + "\n")
