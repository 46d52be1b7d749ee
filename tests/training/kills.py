"""Runs that are killed at random moments and go on, beside the same run left alone.

What is compared: the loss, gradient norm and tokens of every step to the last digit, the hash chain
of every rank, and the ledger. Steps that were trained twice must have come out the same twice.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from factory.namespace import RunDirectory
from factory.namespace.checkpoints import (
    MARKER,
    checkpoint_path,
    complete_checkpoints,
    incomplete_checkpoints,
)
from factory.observe.mixture.files import ledger_of
from factory.reports import MixtureLine, StepLine
from factory.spec import Launch
from factory.training.resume.chains import chain_of

type Point = Literal["driver", "worker", "mid-save"]

POINTS: tuple[Point, ...] = ("driver", "worker", "mid-save")
STEPS, SAVED = 16, 4
OVERRIDES = {
    "model.num_layers": "1",
    "model.hidden_size": "64",
    "model.ffn_hidden_size": "128",
    "model.seq_length": "128",
    "train.global_batch_size": "8",
    "train.micro_batch_size": "2",
    "dataset.buffer": "32",
    "train.train_iters": str(STEPS),
    "logger.log_interval": "1",
    "checkpoint.save_interval": str(SAVED),
}
SAVING_SECONDS = 0.4
"""About what a save takes on this scale: kills fall anywhere in it."""


@dataclass(frozen=True)
class Layout:
    """How many processes train and read."""

    ranks: int
    loader_workers: int

    def __str__(self) -> str:
        return f"DP={self.ranks}, {self.loader_workers} loader workers"

    @property
    def spec(self) -> dict[str, Any]:
        return {
            "workers": self.ranks,
            "loader_workers": self.loader_workers,
            "overrides": OVERRIDES,
        }


LAYOUTS = (Layout(1, 0), Layout(1, 2), Layout(2, 0))


class Driven(Protocol):
    """A driver that runs, however it was started."""

    launch: Launch

    @property
    def run(self) -> RunDirectory: ...

    @property
    def output(self) -> str: ...

    @property
    def driver(self) -> int: ...

    def ranks(self) -> list[int]: ...

    def until(self, condition: Callable[[], bool]) -> bool: ...

    def wait(self) -> int: ...


type Start = Callable[[Launch], Driven]


@dataclass(frozen=True)
class Trace:
    """What a run came to."""

    steps: dict[int, tuple[float, float | None, int]]
    """Loss, gradient norm and tokens so far, by step."""

    chains: list[dict[int, str]]
    """Of each data-parallel rank."""

    ledger: list[MixtureLine]
    """What was seen of each dataset, at every step."""


@dataclass
class Kill:
    """One kill, and what it left."""

    point: Point
    layout: Layout
    step: int = 0
    """The last step that was on disk."""

    complete: int = 0
    """The step of the newest complete checkpoint."""

    torn: bool = False
    """Whether a checkpoint was left that was never completed."""


@dataclass
class Killed:
    """A run that was killed, and finished."""

    trace: Trace
    kills: list[Kill] = field(default_factory=list)


def left_alone(start: Start, launch: Launch, layout: Layout) -> Trace:
    """The run without a kill."""
    driven = start(launch)
    assert driven.wait() == 0, driven.output
    return trace(driven.run, layout)


def killed_and_finished(
    start: Start, launch: Launch, layout: Layout, points: list[Point], chance: random.Random
) -> Killed:
    """The run with a kill in each of its first attempts, and then finished."""
    kills: list[Kill] = []
    for number, point in enumerate(points, start=1):
        driven = start(launch.model_copy(update={"attempt": number}))
        kill = Kill(point, layout)
        if _strike(driven, kill, chance):
            kills.append(kill)
        if driven.wait() == 0:  # it was quicker
            return Killed(trace(driven.run, layout), kills)
    last = start(launch.model_copy(update={"attempt": len(points) + 1}))
    assert last.wait() == 0, last.output
    return Killed(trace(last.run, layout), kills)


def _strike(driven: Driven, kill: Kill, chance: random.Random) -> bool:
    """Kill at a random moment; whether there was something left to kill."""
    driven.until(lambda: not incomplete_checkpoints(driven.run))  # which the driver removes
    saved = max((one.step for one in complete_checkpoints(driven.run)), default=0)
    if kill.point == "mid-save":
        steps = range(saved + SAVED, STEPS + 1, SAVED)
        path = checkpoint_path(driven.run, chance.choice(steps) if steps else STEPS)
        reached = driven.until(lambda: path.exists() and not (path / MARKER).exists())
        time.sleep(chance.uniform(0, SAVING_SECONDS))
    else:
        step = chance.randint(saved, STEPS - 1)
        # Steps after the checkpoint may be on disk already, from the attempt before.
        seen = len(_all_lines(driven.run.path))
        ahead = max(1, step - saved)
        reached = driven.until(lambda: len(_all_lines(driven.run.path)) >= seen + ahead)
        time.sleep(chance.uniform(0, 0.1))
    if not reached:
        return False
    victims = [driven.driver] if kill.point == "driver" else driven.ranks()
    try:
        os.kill(chance.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        return False
    driven.wait()
    kill.step = max(lines_of(driven.run.path), default=0)
    kill.complete = max((one.step for one in complete_checkpoints(driven.run)), default=0)
    kill.torn = bool(incomplete_checkpoints(driven.run))
    return True


def trace(run: RunDirectory, layout: Layout) -> Trace:
    """What a run came to; fails where two attempts disagree."""
    lines = lines_of(run.path)
    assert sorted(lines) == list(range(1, STEPS + 1))
    chains = [chain_of(run, rank) for rank in range(layout.ranks)]
    assert all(sorted(chain) == sorted(lines) for chain in chains)
    ledger = ledger_of(run.path)
    assert [line.step for line in ledger] == sorted(lines)
    return Trace(lines, chains, ledger)


def lines_of(run: Path) -> dict[int, tuple[float, float | None, int]]:
    """The steps of a run; those that were trained again must be equal."""
    found: dict[int, tuple[float, float | None, int]] = {}
    for line in _all_lines(run):
        values = (line.loss, line.grad_norm, line.tokens)
        assert found.setdefault(line.step, values) == values, f"{run}: step {line.step} differs"
    return found


def _all_lines(run: Path) -> list[StepLine]:
    path = run / "monitor" / "steps.jsonl"
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    found: list[StepLine] = []
    for text in whole.splitlines():
        try:
            found.append(StepLine.model_validate_json(text))
        except ValueError:
            continue  # the last line of an attempt that was killed while it wrote
    return found
