"""What every cluster has, and how a part of its file is written."""

from pydantic import BaseModel, Field, field_validator

from factory.control.clusters.words import Variables
from factory.spec import Profile

OWN_VARIABLES = frozenset({"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
"""What makes a rank the rank that it is."""


class Part(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A part of a cluster's file. Its values stay out of errors, for one may be a token."""


class Cluster(Part, frozen=True):
    """One place where a run can go."""

    name: str = Field(description="The file's name, and the value of `cluster` in a run spec.")
    profile: Profile = Field(description="What the hardware allows: cpu or h100.")
    grace_seconds: float = Field(
        default=30.0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="What a run gets to save a checkpoint and end once it was told to stop.",
    )
    rank_environment: Variables = Field(
        default_factory=dict[str, str],
        description="Variables of every training process, for instance NCCL's.",
    )

    @field_validator("name")
    @classmethod
    def _is_that_of_a_file(cls, name: str) -> str:
        if not name.isprintable() or "/" in name or name.startswith("."):
            raise ValueError("write a word without / and line breaks, and no dot before it")
        return name

    @field_validator("rank_environment")
    @classmethod
    def _are_not_the_factorys(cls, variables: dict[str, str]) -> dict[str, str]:
        if taken := sorted(OWN_VARIABLES & variables.keys()):
            raise ValueError(f"{', '.join(taken)}: the factory sets these for each rank itself")
        return variables
