"""What ops are given: the settings of this process, its namespace, who it acts as.

The definitions that hand it to Dagster are in `definitions/resources.py`.
"""

import json
import os
import pwd
import socket
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from factory.errors import StepError
from factory.settings import Settings

if TYPE_CHECKING:
    from factory.control.clusters.common import Cluster
    from factory.namespace import Namespace, Provenance

RESOURCE = "factory"
"""The one resource key that our ops require."""


@dataclass(frozen=True)
class Factory:
    """One process's way to the namespace."""

    settings: Settings

    @cached_property
    def namespace(self) -> "Namespace":
        """The namespace under `FACTORY_ROOT`."""
        from factory.namespace import Namespace

        return Namespace(self.settings.root)

    def image_on(self, cluster: "Cluster") -> str | None:
        """The image of a run there: the one that is sent to a Kubernetes; here, this process's."""
        from factory.control.clusters import Kubernetes

        sent = isinstance(cluster, Kubernetes)
        return self.settings.image if sent else self.settings.own_image

    def provenance(self, run_id: str) -> "Provenance":
        """Who writes what a run writes."""
        from factory.namespace import Provenance

        return Provenance(run_id=run_id, identity=_identity(), image=self.settings.own_image)


def resources(settings: Settings) -> dict[str, dg.ResourceDefinition]:
    """Dagster's resources for these settings."""
    return {
        RESOURCE: dg.ResourceDefinition.hardcoded_resource(Factory(settings)),
        "io_manager": dg.IOManagerDefinition.hardcoded_io_manager(
            NamespaceOnly(settings.dagster_home / "storage")
        ),
    }


class NamespaceOnly(dg.IOManager):
    """Keeps what ops hand to each other, and refuses the value of an asset.

    Dagster would store it under its own home, which no classification protects. An asset writes to
    the namespace, and returns nothing or a `MaterializeResult`.
    """

    def __init__(self, storage: Path) -> None:
        self._storage = storage

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Store the output of an op, as JSON: ops hand over plain data.

        Raises:
            StepError: it is the value of an asset.
        """
        if obj is None:
            return
        if context.has_asset_key:
            raise StepError(
                f"{'/'.join(context.asset_key.path)} returned {type(obj).__name__}, which Dagster "
                "would keep outside the namespace. Write it with namespace.write(...), and return "
                "nothing or a MaterializeResult."
            )
        file = self._file(context)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(obj), encoding="utf-8")

    def load_input(self, context: dg.InputContext) -> Any:
        """Read what another op of the run handed over."""
        if context.upstream_output is None:
            raise StepError("An input without an op before it cannot be read.")
        return json.loads(self._file(context.upstream_output).read_text(encoding="utf-8"))

    def _file(self, context: dg.OutputContext) -> Path:
        return self._storage.joinpath(*context.get_identifier())


def executor(settings: Settings) -> dg.ExecutorDefinition:
    """Where steps run in this deployment."""
    by_name = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}
    return by_name[settings.step_executor]


def _identity() -> str:
    user = os.getuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"uid {user}"
    return f"{name}@{socket.gethostname()}"
