"""KAI's resources without KAI: definitions of what the factory and its chart write and read.

Fields that they do not use are missing, and an unknown one is refused where helm asks for that.
"""

import contextlib
import http
from collections.abc import Generator

from tests.cluster.api import Api, Object, eventually

_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TEXT: Object = {"type": "string"}
_NUMBER: Object = {"type": "number"}
_ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _fields(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


_AMOUNT = _fields(quota=_NUMBER, limit=_NUMBER, overQuotaWeight=_NUMBER)
_QUEUE = _fields(
    displayName=_TEXT,
    parentQueue=_TEXT,
    priority={"type": "integer"},
    preemptMinRuntime=_TEXT,
    reclaimMinRuntime=_TEXT,
    resources=_fields(gpu=_AMOUNT, cpu=_AMOUNT, memory=_AMOUNT),
)
_LEVEL = _fields(nodeLabel=_TEXT)
_TOPOLOGY = _fields(levels={"type": "array", "items": _LEVEL})


def _definition(group: str, version: str, kind: str, plural: str, spec: Object) -> Object:
    schema = _fields(spec=spec, status=_ANYTHING)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced" if kind == "PodGroup" else "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


DEFINITIONS = (
    _definition("scheduling.run.ai", "v2", "Queue", "queues", _QUEUE),
    _definition("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", _ANYTHING),
    _definition("kai.scheduler", "v1alpha1", "Topology", "topologies", _TOPOLOGY),
)


@contextlib.contextmanager
def served(admin: Api) -> Generator[None]:
    """While this lasts, the server knows KAI's resources; then no more, for others to find."""
    paths = [_path(one) for one in DEFINITIONS]
    try:
        for one in DEFINITIONS:
            admin.create(_KINDS, one)
        assert eventually(lambda: all(admin.ask("GET", path).ok for path in paths))
        yield
    finally:
        for one in DEFINITIONS:
            admin.delete(f"{_KINDS}/{one['metadata']['name']}")
        # What is published of a group that is gone stays for a moment, and is no JSON then.
        published = [f"/openapi/v3{path.rpartition('/')[0]}" for path in paths]
        gone = [*paths, *published]
        assert eventually(
            lambda: all(
                admin.ask("GET", path).status == http.HTTPStatus.NOT_FOUND for path in gone
            ),
            seconds=90,
        )


def _path(definition: Object) -> str:
    spec = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
