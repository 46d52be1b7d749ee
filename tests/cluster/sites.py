"""A namespace with both of its trees, and a cluster's file whose pods see them at the same path.

The namespace lies outside of /tmp, which is a pod's own. Python and the locked packages are those
of this process, mounted where the image expects them.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.control.clusters import Kubernetes
from factory.namespace import Namespace
from tests.cluster.access import factory_account
from tests.cluster.api import Api, eventually
from tests.cluster.kubelets import Machines

USER = 1000
"""Whose files pods write."""

OF_IMAGE = "/opt/env/lib/python3.12/site-packages", "/opt/python"
"""Where an image with `DEPENDENCIES=mounted` looks for packages and for Python."""

_WHERE = "/var/tmp"  # noqa: S108  outside of a pod's scratch space


@dataclass(frozen=True)
class Site:
    """One namespace, and the way from it to a cluster."""

    root: Path
    cluster: Kubernetes
    api: Api
    """As the factory asks the API server."""

    @property
    def namespace(self) -> Namespace:
        """The namespace, as the control plane sees it."""
        return Namespace(self.root)

    def open_run(self, run_id: str) -> Path:
        """The directory of a public run, made for the user of its pods."""
        run = self.namespace.open_run("public", run_id)
        run.directory("messages")
        for path in (run.path, *run.path.rglob("*")):
            os.chown(path, USER, USER)
        return run.path


@contextmanager
def site(machines: Machines, name: str) -> Generator[Site]:
    """A site on those machines, in a Kubernetes namespace of that name; gone afterwards."""
    admin = machines.plane.admin
    admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = factory_account(machines.plane, name)
    here = f"/api/v1/namespaces/{name}"
    assert eventually(lambda: admin.exists(f"{here}/serviceaccounts/default"))
    root = Path(tempfile.mkdtemp(prefix="factory-", dir=_WHERE))
    try:
        root.chmod(0o755)
        for tree in ("public", "private"):
            (root / tree).mkdir()
        token = machines.plane.folder / f"{name}.token"
        token.touch(mode=0o600)
        token.write_text(account.token())
        cluster = Kubernetes.model_validate(_file(machines, name, root, token))
        yield Site(root, cluster, account.api())
    finally:
        admin.delete(here)
        assert eventually(lambda: not admin.items(f"{here}/pods"), seconds=120)
        shutil.rmtree(root)


def _file(machines: Machines, name: str, root: Path, token: Path) -> dict[str, Any]:
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
