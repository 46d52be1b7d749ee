"""From the name of a cluster to the backend that sends a run there."""

import dagster as dg

from factory.control.backend import Backend
from factory.control.clusters import Kubernetes, cluster
from factory.settings import Settings
from factory.spec import RunSpec

STEP = "train"
"""The op that follows a run; what another process needs to take it up is kept under its name."""


def place(spec: RunSpec, settings: Settings, context: dg.OpExecutionContext) -> Backend:
    """The backend of the spec's cluster, for the Dagster run that the context is of.

    Raises:
        SpecError: there is no such cluster.
        SettingsError: Dagster's runs are kept where two instances cannot be told apart.
    """
    where = cluster(spec.cluster)
    if isinstance(where, Kubernetes):
        from factory.control.kube.backend import KubernetesBackend

        return KubernetesBackend(settings, where, context.instance, context.run, STEP)
    from factory.control.local import LocalBackend

    return LocalBackend(settings)
