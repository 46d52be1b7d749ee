"""Whose objects on a cluster are: the name of one Dagster instance, as its runs' label says it.

Several instances may send runs to one cluster, and each sweeps what its own runs left behind.
"""

from typing import Protocol, runtime_checkable

import dagster as dg

from factory.control.kube.names import label_value
from factory.errors import SettingsError


@runtime_checkable
class _Identified(Protocol):
    """A run storage that knows its own id, as every one in a database does."""

    def get_run_storage_id(self) -> str: ...


def owner(instance: dg.DagsterInstance) -> str:
    """Which Dagster asks for a run's objects: the same word in every process of the instance.

    It is made once, with the storage of its runs. An instance that lost that storage is another
    one, and no run of the old one is known to it.

    Raises:
        SettingsError: the storage of its runs is of a kind that has no id.
    """
    storage = instance.run_storage
    if not isinstance(storage, _Identified):
        raise SettingsError(
            f"Dagster keeps its runs in a {type(storage).__name__}, which has no id, so nothing "
            "could tell what this Dagster left on a cluster from what another one did. Configure "
            "`storage` in dagster.yaml with SQLite or PostgreSQL."
        )
    storage.get_run_storage_id()  # two processes may make the first id at once, each one of its own
    return label_value(storage.get_run_storage_id())
