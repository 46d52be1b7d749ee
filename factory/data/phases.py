"""Phases of a step: one pure function over all shards, each shard finished once.

A step consists of phases over shards (what is local to a shard) and of reduces in between (what
needs all of them at once). Both leave finished work in the step's work directory, so a step that
was cut off goes on from there. What the functions do is in the module of each step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from factory.data.engines import Engine, Tick
from factory.data.finished import Facts, Fill, Finished, finish, found, sweep
from factory.data.progress import Meter, Say
from factory.data.shards import Shard
from factory.errors import StepError


class Task(Protocol):
    """Reads a shard, writes files into a directory, and says what it saw.

    Picklable and pure: the same shard gives the same rows, wherever and whenever.
    """

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Do it."""
        ...


@dataclass(frozen=True)
class Phase:
    """A task over shards, as an engine runs it."""

    folder: Path
    task: Task

    @property
    def reports(self) -> Path:
        """Where workers elsewhere tell what they have to tell."""
        return self.folder / "reports"

    def result(self, shard: Shard) -> Path:
        """Where the finished work of a shard is."""
        return self.folder / f"{shard.number:05d}"

    def __call__(self, shard: Shard, tick: Tick) -> None:
        """Finish one shard."""
        rows = 0

        def count(amount: int) -> None:
            nonlocal rows
            rows += amount
            tick(amount)

        def fill(draft: Path) -> Facts:
            return {**self.task(shard, draft, count), "rows_passed": rows}

        finish(self.result(shard), shard, fill)


@dataclass(frozen=True)
class Workshop:
    """Where the phases of one step are done."""

    folder: Path
    engine: Engine
    say: Say

    def every(self, name: str, task: Task, shards: Sequence[Shard], *, what: str) -> list[Finished]:
        """What becomes of each shard, in their order; `what` names the rows that are counted."""
        phase = Phase(self.folder / name, task)
        phase.folder.mkdir(exist_ok=True)
        sweep(phase.folder)
        meter = Meter(self.say, what, len(shards), sum(shard.size for shard in shards))
        earlier = {shard.number: found(phase.result(shard), shard) for shard in shards}
        for shard in shards:
            if done := earlier[shard.number]:
                meter.found(shard, done.facts["rows_passed"])
        left = [shard for shard in shards if earlier[shard.number] is None]
        if len(left) < len(shards):
            finished = len(shards) - len(left)
            self.say(f"{finished:,} of {len(shards):,} shards are finished from before")
        for shard in self.engine.map(phase, left, meter):
            meter.done(shard)
        meter.report()
        return [_there(phase.result(shard), shard, earlier[shard.number]) for shard in shards]

    def once(self, name: str, fill: Fill) -> Finished:
        """A reduce, in this process: what `fill` writes when it is given a directory."""
        folder = self.folder / name
        shard = Shard(0, (), 0)
        if done := found(folder, shard):
            return done
        finish(folder, shard, fill)
        return _there(folder, shard, None)


def _there(folder: Path, shard: Shard, earlier: Finished | None) -> Finished:
    done = earlier or found(folder, shard, verify=False)
    if done is None:
        raise StepError(f"{folder} is gone although it was finished. Run the step again.")
    return done
