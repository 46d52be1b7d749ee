"""`kind: local`: a Ray cluster of the run's own, on this machine. `control.local` starts it."""

from typing import Literal

from pydantic import Field

from factory.control.clusters.common import Cluster


class Local(Cluster, frozen=True):
    """This machine."""

    kind: Literal["local"] = Field(description="A Ray cluster of the run's own, on this machine.")
    num_cpus: int | None = Field(
        default=None, ge=1, description="CPUs that Ray may count on; all of the machine if unset."
    )
