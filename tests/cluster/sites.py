"""A namespace with both of its trees, and a cluster's file whose pods see them at the same path.

Python and the locked packages are those of this process, mounted where the image expects them.
"""

import shutil
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.access import factory_account
from tests.cluster.api import Api, eventually
from tests.cluster.kubelets import Machines
from tests.cluster.leftovers import NAMESPACES

USER = 1000
"""Whose files pods write."""

OF_IMAGE = "/opt/env/lib/python3.12/site-packages", "/opt/python"
"""Where an image with `DEPENDENCIES=mounted` looks for packages and for Python."""


@dataclass(frozen=True)
class Site:
    """One namespace, and a cluster whose pods see it."""

    root: Path
    cluster: dict[str, Any]
    """The fields of its file."""

    api: Api
    """As the factory asks the API server."""


@contextmanager
def site(machines: Machines, name: str) -> Generator[Site]:
    """A site on those machines, in a Kubernetes namespace of that name; gone afterwards."""
    admin = machines.plane.admin
    admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = factory_account(machines.plane, name)
    here = f"/api/v1/namespaces/{name}"
    assert eventually(lambda: admin.exists(f"{here}/serviceaccounts/default"))
    root = NAMESPACES / f"{machines.plane.folder.name}-{name}"
    try:
        for tree in ("public", "private"):
            (root / tree).mkdir(parents=True)
        token = machines.plane.folder / f"{name}.token"
        token.touch(mode=0o600)
        token.write_text(account.token())
        yield Site(root, _cluster(machines, name, root, token), account.api())
    finally:
        admin.delete(here)
        assert eventually(lambda: not admin.items(f"{here}/pods"), seconds=120)  # they mount it
        shutil.rmtree(root)


def _cluster(machines: Machines, name: str, root: Path, token: Path) -> dict[str, Any]:
    """A cluster's file for these machines, which really have two cores between them."""
    sources = sysconfig.get_path("purelib"), sys.base_prefix
    return {
        "name": machines.plane.name,
        "kind": "kubernetes",
        "profile": "cpu",
        "api_server": machines.plane.address,
        "ca": {"file": str(machines.plane.ca)},
        "token": {"file": str(token)},
        "namespace": name,
        "scheduler": "default",
        "multi_node_without_gang": True,
        "pod_security": "privileged",
        "queues": {"training": {"name": "training"}},
        "nodes": {"count": 2, "gpus": 0, "cpus": 2, "memory_gib": 8, "scratch_gib": 2},
        "head": {"cpus": 1, "memory_gib": 4},
        "tree": {
            "path": str(root),
            "public": {"host_path": str(root / "public")},
            "private": {"host_path": str(root / "private")},
        },
        "mounts": [
            {"path": path, "host_path": source}
            for path, source in zip(OF_IMAGE, sources, strict=True)
        ],
        "run_as": {"user": USER, "group": USER},
        "environment": {"LD_LIBRARY_PATH": f"{OF_IMAGE[1]}/lib"},  # where libpython is
    }
