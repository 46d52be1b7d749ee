"""Clusters: where a run can go, read from `definitions/clusters/*.yaml`.

`local` is the one kind so far: a Ray cluster of the run's own, on this machine. The client that
starts it is in `local`, the spec that names it in `factory.spec`.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from factory.control.nearest import naming
from factory.errors import DeclarationError, SpecError
from factory.settings import CHECKOUT
from factory.spec import Profile

FOLDER = CHECKOUT / "definitions" / "clusters"
KINDS = ("local",)
OWN_VARIABLES = frozenset({"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
"""What makes a rank the rank that it is."""


class Cluster(BaseModel, frozen=True, extra="forbid"):
    """One place where a run can go."""

    name: str = Field(description="The file's name, and the value of `cluster` in a run spec.")
    kind: Literal["local"] = Field(description="How the run gets its Ray cluster.")
    profile: Profile = Field(description="What the hardware allows: cpu or h100.")
    num_cpus: int | None = Field(
        default=None, ge=1, description="CPUs that Ray may count on; all of the machine if unset."
    )
    grace_seconds: float = Field(
        default=30.0,
        ge=0,
        description="What a run gets to save a checkpoint and end once it was told to stop.",
    )
    rank_environment: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Variables of every training process, for instance NCCL's.",
    )

    @field_validator("rank_environment")
    @classmethod
    def _are_not_the_factorys(cls, variables: dict[str, str]) -> dict[str, str]:
        if taken := sorted(OWN_VARIABLES & variables.keys()):
            raise ValueError(f"{', '.join(taken)}: the factory sets these for each rank itself")
        return variables


def clusters(folder: Path = FOLDER) -> dict[str, Cluster]:
    """Every declared cluster by name.

    Raises:
        DeclarationError: a file is not a cluster, or its name is not the file's.
    """
    read = (_read(path) for path in sorted(folder.glob("*.yaml")))
    return {cluster.name: cluster for cluster in read}


def cluster(name: str, folder: Path = FOLDER) -> Cluster:
    """The cluster of that name.

    Raises:
        SpecError: no file declares it.
    """
    known = clusters(folder)
    if name not in known:
        raise SpecError(f"No cluster {name!r} in definitions/clusters. {naming(name, known)}")
    return known[name]


def _read(path: Path) -> Cluster:
    import yaml

    where = f"definitions/clusters/{path.name}"
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DeclarationError(f"{where} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise DeclarationError(f"{where} holds {type(content).__name__}, not fields of a cluster.")
    if content.get("kind", "local") not in KINDS:
        raise DeclarationError(
            f"{where} is of kind {content['kind']!r}; known kinds: {', '.join(KINDS)}."
        )
    try:
        result = Cluster.model_validate(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)
        )
        raise DeclarationError(f"{where} is not a cluster: {problems}.") from error
    if result.name != path.stem:
        raise DeclarationError(
            f"{where} names its cluster {result.name!r}. File and name must be the same word."
        )
    return result
