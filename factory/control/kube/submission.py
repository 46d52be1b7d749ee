"""A submission: everything that decides a run's objects on Kubernetes, before there are any."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from types import MappingProxyType

from factory.control.clusters import Kubernetes
from factory.control.clusters.queues import Queue
from factory.control.kube.names import (
    ATTEMPT,
    MANAGED_BY,
    OWNER,
    PREFIX,
    ROOT_RUN,
    RUN,
    STEP,
    job_name,
    label_value,
    secret_name,
)
from factory.control.nearest import naming
from factory.errors import SpecError
from factory.settings import Deployment
from factory.spec import Launch, Purpose

PIPES_VARIABLES = "DAGSTER_PIPES_"
"""How the names of the variables begin that Dagster hands to a driver."""


def installed_ray() -> str:
    """The version of Ray here, which is that of the image: both come from one lock."""
    return version("ray")


def no_queue(purpose: Purpose, cluster: Kubernetes) -> str:
    """What is said where a cluster has no queue for that."""
    where = f"definitions/clusters/{cluster.name}.yaml"
    return (
        f"There is no queue for {purpose} in {where}. {naming(purpose, cluster.queues)} Add "
        f"queues.{purpose} to the file, or launch with --set purpose=NAME."
    )


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One attempt of a run, and where it goes."""

    launch: Launch
    cluster: Kubernetes
    root_run_id: str
    """Of Dagster: a run that is executed again keeps it."""

    owner: str
    """Which Dagster asks for it. A sweep leaves what belongs to another alone."""

    deployment: Deployment
    step_key: str = "train"
    environment: Mapping[str, str] = MappingProxyType({})
    """What Pipes hands to the driver."""

    ray_version: str = field(default_factory=installed_ray)

    @property
    def name(self) -> str:
        """The RayJob's name."""
        return job_name(self.root_run_id, self.step_key, self.launch.attempt)

    @property
    def secret_name(self) -> str:
        """The Secret that holds the run's own Ray token."""
        return secret_name(self.name)

    @property
    def queue(self) -> Queue:
        """The queue of its purpose.

        Raises:
            SpecError: the cluster has none.
        """
        purpose = self.launch.spec.purpose
        if purpose not in self.cluster.queues:
            raise SpecError(no_queue(purpose, self.cluster))
        return self.cluster.queues[purpose]

    @property
    def labels(self) -> dict[str, str]:
        """What every object of the run carries."""
        spec = self.launch.spec
        said = {
            OWNER: self.owner,
            RUN: self.launch.run_id,
            ROOT_RUN: self.root_run_id,
            STEP: self.step_key,
            ATTEMPT: str(self.launch.attempt),
            f"{PREFIX}/purpose": spec.purpose,
            f"{PREFIX}/classification": self.launch.classification,
            f"{PREFIX}/recipe": spec.recipe,
            f"{PREFIX}/mix": spec.mix,
        }
        return {MANAGED_BY: PREFIX, **{key: label_value(text) for key, text in said.items()}}
