"""What a run writes about itself. Everyone who reads a run reads these, nobody parses logs.

`StepLine` goes to `monitor/steps.jsonl`, `MixtureLine` to `mixture/ledger.jsonl`, `RunRecord` to
`record.json` in the run's directory; the same objects travel as Pipes messages, wrapped as
`{"kind": ..., ...}`. `RealizedMix` is `mixture/realized.json`, what the lines came to.
What was asked for is in `spec`.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from factory.errors import RunFailed
from factory.settings import Dependencies
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


class SourceCounts(BaseModel, frozen=True, extra="forbid"):
    """What has been seen of one dataset since counting began, over all ranks."""

    source: str = Field(description="Key of the dataset.")
    samples: int = Field(ge=0, description="Counted where their first part lies.")
    documents: int = Field(ge=0, description="Sequences; a long sample is several.")
    tokens: int = Field(ge=0, description="Positions that read a token.")
    loss_tokens: int = Field(ge=0, description="Positions that carry loss.")
    image_tokens: int = Field(ge=0, description="Positions that stand for patches of an image.")
    truncated: int = Field(ge=0, description="Tokens cut out of the samples counted here.")
    distinct: int = Field(ge=0, description="Samples that were seen at least once.")
    dropped: dict[str, tuple[int, int]] = Field(
        default_factory=dict[str, tuple[int, int]],
        description="Samples and tokens that were never packed, by reason.",
    )


class MixtureLine(BaseModel, frozen=True, extra="forbid"):
    """What has been seen up to a step, source by source: a line of `mixture/ledger.jsonl`.

    Lines hold sums since `since`, so an interval is the difference of two lines, and a line that
    was lost takes nothing with it.
    """

    kind: Literal["mixture"] = "mixture"
    step: int = Field(ge=1, description="Optimizer steps finished, counted from 1.")
    of: int = Field(ge=1, description="Steps that this run will do.")
    since: int = Field(
        default=0, ge=0, description="Steps before counting began; above 0 with fresh data only."
    )
    begun: int = Field(default=1, ge=1, description="The attempt in which the data began.")
    sources: tuple[SourceCounts, ...] = Field(description="In the order of the lock of the mix.")
    slots: int = Field(ge=0, description="Positions of all sequences.")
    ending: int = Field(ge=0, description="Padding behind the last document of a sequence.")
    aligning: int = Field(ge=0, description="Padding that the parallel layout asks for.")
    alarms: tuple[str, ...] = Field(default=(), description="Shares that have left their band.")
    notes: tuple[str, ...] = Field(default=(), description="Sources that have reached a cap.")
    reaches: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="Step of this run at which a source will have been read as often as it may, "
        "at the pace so far.",
    )


class Reading(BaseModel, frozen=True, extra="forbid"):
    """How a run reads its mix: a line of `mixture/reading.jsonl` where its data begin.

    With it, the lock and the data, what the ledger counted can be counted again.
    """

    begun: int = Field(ge=1, description="The attempt in which the data began.")
    after: int = Field(ge=0, description="Steps before.")
    seed: int
    ranks: int = Field(ge=1, description="Data-parallel ranks.")
    workers: int = Field(ge=0, description="Loader processes of each; 0 reads in the rank itself.")
    micro_batch_size: int = Field(ge=1, description="Sequences of a batch.")
    global_batch_size: int = Field(ge=1, description="Sequences of a step, over all ranks.")

    @property
    def readers(self) -> int:
        """Processes, over all ranks, of which each reads a part of its own."""
        return self.ranks * max(1, self.workers)


class RealizedSource(BaseModel, frozen=True, extra="forbid"):
    """One dataset of a mix, as it was declared and as it came."""

    counts: SourceCounts
    role: str
    size: int = Field(ge=0, description="Samples of the version that the run read.")
    share_of_samples: float
    share_of_tokens: float
    share_of_loss_tokens: float
    declared: float = Field(description="Share that the mix asks for, in its basis.")
    band: float = Field(description="How far from it the share may be without an alarm.")
    within: bool = Field(description="Whether it is.")
    epochs: float = Field(
        description="Times that the source was read, what was dropped included: distinct samples "
        "over its size in the first round, and all that were read over it afterwards."
    )
    coverage: float = Field(description="Share of the source's samples seen at least once.")
    max_epochs: float | None = Field(description="Its cap.")
    reaches: int | None = Field(description="Step at which it reaches its cap, or 4 epochs.")


class RealizedMix(BaseModel, frozen=True, extra="forbid"):
    """What a run has seen beside what its mix declares: `mixture/realized.json`."""

    mix: str
    mix_lock: str = Field(description="sha256 of the lock of the mix.")
    basis: Literal["sample", "token", "loss_token"] = Field(description="Of the declared shares.")
    step: int = Field(ge=1)
    of: int = Field(ge=1)
    since: int = Field(ge=0)
    sources: tuple[RealizedSource, ...]
    slots: int
    ending: int
    aligning: int
    alarms: tuple[str, ...] = Field(description="All that were raised, oldest first.")


class RunRecord(BaseModel, frozen=True, extra="forbid"):
    """What actually ran, pinned. `record.json` in the run's directory."""

    launch: Launch
    started_at: str = Field(description="UTC, ISO 8601.")
    dependencies: Dependencies | None = Field(
        default=None,
        description="Whether the image holds its packages or had them mounted; none: no image.",
    )
    python: str
    packages: dict[str, str] = Field(description="Versions of the packages that decide numbers.")
    nodes: list[str] = Field(description="Host name of each Ray node.")
    world_size: int = Field(ge=1)
    config_sha256: str | None = Field(
        default=None, description="Of config.yaml, the full ConfigContainer, once it was built."
    )


def read_lines[M: BaseModel](file: Path, model: type[M]) -> list[M]:
    """The lines of a file that this run appends to, as `lines_of`; none where there is no file.

    For the run itself. Others read its files through `namespace.run_files`.

    Raises:
        RunFailed: a whole line is something else.
    """
    return lines_of(file.read_bytes() if file.exists() else b"", str(file), model)


def lines_of[M: BaseModel](data: bytes, where: str, model: type[M]) -> list[M]:
    """The lines of what a run appends to, oldest first; `where` is what messages call it.

    A line that a crash cut off is left out, also where a later attempt has closed it.

    Raises:
        RunFailed: a whole line is something else.
    """
    found: list[M] = []
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            continue
        try:
            found.append(model.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                continue
            raise RunFailed(
                f"{where}, line {number}, is no {model.__name__}: {first['msg']}."
            ) from error
    return found


MESSAGES_DIRECTORY_PARAM = "directory"
"""The Pipes parameter that names the directory of the message chunks."""


def chunk_name(number: int) -> str:
    """The file of Pipes messages with that number, counted from 1: `000001.jsonl`."""
    return f"{number:06d}.jsonl"
