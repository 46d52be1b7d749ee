"""Start: which checkpoint an attempt goes on from, and the states that lie in it.

The newest complete one whose files are what they were. The ranks read the files side by side,
since a large model's are terabytes. One that is damaged is set aside, with a loud word, and the one
before it is taken. What was begun and never completed is removed before any rank trains.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.discovery import recipe_values
from factory.errors import ResumeRefused
from factory.namespace import Damage, RunDirectory
from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import (
    CHECKPOINTS,
    Checkpoint,
    complete_checkpoints,
    damaged_markers,
    incomplete_checkpoints,
    remove,
    set_aside,
)
from factory.spec import RunSpec

STATES = "factory"
"""Directory in a checkpoint for the states that Bridge does not know of."""

REDISTRIBUTED = "redistributed"
"""Directory beside the checkpoints for states that were made anew for other ranks."""

SHOWN = 3

type Verify = Callable[[Checkpoint], Sequence[Damage]]
type Say = Callable[[str, str], None]


@dataclass(frozen=True)
class Start:
    """Where an attempt goes on. Travels to the ranks by pickle."""

    checkpoint: Checkpoint
    fresh_data: bool = False
    redistributed: bool = False
    """The data's states were made anew, for another number of data-parallel ranks."""

    def data(self, run: RunDirectory, attempt: int) -> Path | None:
        """The directory above the data's states, as Bridge wants it; none for fresh data."""
        if self.fresh_data:
            return None
        if self.redistributed:
            return run.path / CHECKPOINTS / REDISTRIBUTED / f"attempt-{attempt:04d}"
        return run.path / CHECKPOINTS


def choose(attempt: Attempt, verify: Verify, say: Say) -> Checkpoint | None:
    """The checkpoint to go on from; none where the run must begin again.

    `say` gets a phase's name and detail: what was found damaged is never passed over in silence.
    """
    attempt.check()
    for path in incomplete_checkpoints(attempt.run):
        remove(path)
    for path, found in damaged_markers(attempt.run).items():
        _set_aside(attempt, path, [found], say)
    for checkpoint in reversed(complete_checkpoints(attempt.run)):
        damage = verify(checkpoint)
        if not damage:
            return checkpoint
        _set_aside(attempt, checkpoint.path, damage, say)
    return None


def _set_aside(attempt: Attempt, path: Path, damage: Sequence[Damage], say: Say) -> None:
    shown = "; ".join(f"{one.path} {one.problem}" for one in damage[:SHOWN])
    kept = set_aside(attempt.run, path, attempt.number)
    say(
        "damaged checkpoint",
        f"step {int(path.name.rpartition('_')[2])} cannot be loaded: {shown}. It was moved to "
        f"{kept}, and the run goes on from the newest one that can",
    )


def nothing_left(start: Start, spec: RunSpec) -> bool:
    """Whether the checkpoint is of the last step that the spec asks for, or of a later one.

    Bridge would train no step of such a run, and save into its complete checkpoint again.
    """
    steps = recipe_values(spec.recipe, spec.overrides)["train.train_iters"]
    return isinstance(steps, int) and start.checkpoint.step >= steps


def shares(names: Sequence[str], ranks: int) -> list[list[str]]:
    """The files that each rank reads, so that none of them has much more than another."""
    return [list(names[rank::ranks]) for rank in range(ranks)]


def data_state_name(data_rank: int) -> str:
    """Bridge's file with Energon's state of that data-parallel rank."""
    return f"train_dataloader_dprank{data_rank:03d}.pt"


def states_name(data_rank: int) -> str:
    """Our file with the states of that data-parallel rank."""
    return f"{STATES}/states-dprank{data_rank:03d}.json"


def states_of(checkpoint: Checkpoint, data_rank: int) -> dict[str, Any]:
    """The states of a data-parallel rank, by name.

    Raises:
        ResumeRefused: the checkpoint has none for that rank.
    """
    for name in (states_name(data_rank), data_state_name(data_rank)):
        if name not in checkpoint.marker.files:
            raise ResumeRefused(
                f"The checkpoint of step {checkpoint.step} holds no {name}, so the data of "
                f"data-parallel rank {data_rank} cannot continue exactly. `--fresh-data` goes on "
                "with its weights, and with the data from their beginning."
            )
    return read_states(checkpoint.path, data_rank)


def read_states(directory: Path, data_rank: int) -> dict[str, Any]:
    """The states of a data-parallel rank that lie in that directory."""
    found: dict[str, Any] = json.loads((directory / states_name(data_rank)).read_bytes())
    return found
