"""What defines a run: `RunSpec` is what was asked for, `Launch` is that with everything pinned.

Both planes read this file: the control plane validates a spec and writes a launch, the driver
reads the launch back. What a run says about itself is in `reports`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from factory.keys import Classification

type Profile = Literal["cpu", "h100"]
type Purpose = Literal["training", "smoke", "probe"]


def _as_text(value: Any) -> Any:
    """A number, true, false or nothing as the text that stands for it, as YAML reads them."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else value


class RunSpec(BaseModel, frozen=True, extra="forbid"):
    """Everything that a person chooses for one run. Flat, because Dagster's launchpad shows it."""

    recipe: str = Field(
        description="Model and training settings: a function under factory/training/recipes, "
        "written `module.function`, for instance `debug.pretrain`."
    )
    mix: str = Field(description="Datasets and weights: the name of a file in definitions/mixes.")
    cluster: str = Field(
        default="local",
        description="Where the run goes: the name of a file in definitions/clusters.",
    )
    purpose: Purpose = Field(
        default="training",
        description="What it is for, which decides its queue, and what follows when its place is "
        "taken: training goes on later, smoke is tried once more, probe is skipped.",
    )
    workers: int = Field(
        default=1,
        ge=1,
        le=4096,
        description="Data-parallel worker processes (cpu profile) or nodes (h100 profile).",
    )
    gpus_per_worker: int = Field(
        default=0,
        ge=0,
        le=16,
        description="GPUs of each worker; 0: as many as a node of its cluster has.",
    )
    loader_workers: int = Field(
        default=0,
        ge=0,
        le=64,
        description="Energon loader processes of each rank; 0 loads in the training process.",
    )
    seed: int = Field(default=1234, ge=1, le=2**31 - 1, description="Seed of model and data order.")
    ledger: bool = Field(
        default=True,
        description="Count what the run sees of each dataset, and hold it against the mix.",
    )
    chain: bool = Field(
        default=True,
        description="Write down a hash over all that each rank reads, at every step.",
    )
    run_limit_hours: float = Field(
        default=24.0,
        gt=0,
        allow_inf_nan=False,
        description="Longest time the run may be running; queueing not counted.",
    )
    queue_limit_hours: float = Field(
        default=72.0,
        gt=0,
        allow_inf_nan=False,
        description="Longest time the run may wait for its cluster.",
    )
    overrides: dict[str, Annotated[str, BeforeValidator(_as_text)]] = Field(
        default_factory=dict[str, str],
        description="Recipe fields by path with their new value, "
        "for instance `train.train_iters: 200`.",
    )

    @property
    def ranks(self) -> int:
        """Processes that train together: one per GPU, or one per worker where there are none."""
        return self.workers * max(1, self.gpus_per_worker)


class CodeIdentity(BaseModel, frozen=True, extra="forbid"):
    """Which code ran, as far as it can be named without an image."""

    commit: str | None = Field(description="Git commit of the checkout; none outside a checkout.")
    tree: str = Field(description="sha256 over the sources of factory/ and definitions/.")
    lock: str = Field(description="sha256 of requirements.lock.")


class Launch(BaseModel, frozen=True, extra="forbid"):
    """A spec with every choice resolved: what the driver is given, and nothing else."""

    run_id: str = Field(description="Dagster run id; also the name of the run's directory.")
    attempt: int = Field(ge=1, description="1 for the first submission of this run.")
    classification: Classification = Field(description="Private if any dataset of the mix is.")
    spec: RunSpec
    profile: Profile = Field(description="The cluster's runtime profile.")
    datasets: dict[str, str] = Field(
        description="Version of every asset that the run reads, by asset key: "
        "{'public/text/plos/energon/train': '4f2a...'}."
    )
    mix_lock: str = Field(
        default="",
        description="Hash of `mix.lock` in the run's directory; empty where no gate has written "
        "one, and the driver locks the mix with these versions.",
    )
    image: str | None = Field(description="Image by digest; none for a working tree.")
    code: CodeIdentity
    rank_environment: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Variables of every rank, from the cluster's file: {'NCCL_IB_HCA': 'mlx5'}.",
    )
    grace_seconds: float = Field(
        default=30.0,
        ge=0,
        description="What the driver gets to save and end once it was told to stop, from the "
        "cluster's file.",
    )
    fresh_data: bool = Field(
        default=False,
        description="Go on with the weights of the last checkpoint and the data from the start.",
    )
    redistribute: bool = Field(
        default=False, description="Go on with the data on another number of data-parallel ranks."
    )
