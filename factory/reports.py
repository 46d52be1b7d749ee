"""What a run writes about itself. Everyone who reads a run reads these, nobody parses logs.

`StepLine` goes to `monitor/steps.jsonl`, `RunRecord` to `record.json` in the run's directory;
the same objects travel as Pipes messages, wrapped as `{"kind": ..., ...}`.
What was asked for is in `spec`.
"""

from typing import Literal

from pydantic import BaseModel, Field

from factory.spec import Launch


class StepLine(BaseModel, frozen=True, extra="forbid"):
    """One logging interval of training."""

    kind: Literal["step"] = "step"
    step: int = Field(ge=1, description="Optimizer steps finished, counted from 1.")
    of: int = Field(ge=1, description="Steps that this run will do.")
    loss: float = Field(description="Mean language-model loss per loss token, in nats.")
    grad_norm: float | None = Field(description="Gradient norm before clipping.")
    learning_rate: float | None = Field(description="Learning rate of the step.")
    tokens: int = Field(ge=0, description="Tokens trained on so far, over all ranks.")
    seconds: float = Field(ge=0, description="Wall time of the interval.")


class Phase(BaseModel, frozen=True, extra="forbid"):
    """The run has reached a named point: shown as progress, kept for launch benchmarks."""

    kind: Literal["phase"] = "phase"
    name: str = Field(description="driver, cluster, workers, build, train, checkpoint or done.")
    detail: str = ""
    seconds: float = Field(ge=0, description="Since the driver started.")


class RunRecord(BaseModel, frozen=True, extra="forbid"):
    """What actually ran, pinned. `record.json` in the run's directory."""

    launch: Launch
    started_at: str = Field(description="UTC, ISO 8601.")
    python: str
    packages: dict[str, str] = Field(description="Versions of the packages that decide numbers.")
    nodes: list[str] = Field(description="Host name of each Ray node.")
    world_size: int = Field(ge=1)
    config_sha256: str | None = Field(
        default=None, description="Of config.yaml, the full ConfigContainer, once it was built."
    )


MESSAGES_DIRECTORY_PARAM = "directory"
"""The Pipes parameter that names the directory of the message chunks."""


def chunk_name(number: int) -> str:
    """The file of Pipes messages with that number, counted from 1: `000001.jsonl`."""
    return f"{number:06d}.jsonl"
