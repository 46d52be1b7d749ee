"""What ops are given: the settings of this process, its namespace, who it acts as.

The definitions that hand it to Dagster are in `definitions/resources.py`.
"""

import os
import pwd
import socket
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import dagster as dg

from factory.settings import Settings

if TYPE_CHECKING:
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

    def provenance(self, run_id: str) -> "Provenance":
        """Who writes what a run writes."""
        from factory.namespace import Provenance

        return Provenance(run_id=run_id, identity=_identity(), image=self.settings.image)


def resources(settings: Settings) -> dict[str, dg.ResourceDefinition]:
    """Dagster's resources for these settings."""
    return {RESOURCE: dg.ResourceDefinition.hardcoded_resource(Factory(settings))}


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
