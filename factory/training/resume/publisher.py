"""Publisher: completes each checkpoint that Bridge has saved, beside the training thread.

Each rank hashes the files that it wrote, the first rank of each data-parallel group adds the states
of its data, and rank 0 writes the marker once it has heard from all. Before that a checkpoint is
none (`factory.namespace.checkpoints`), so a kill at any moment leaves the one before.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from megatron.bridge.training.callbacks import Callback, CallbackContext
from pydantic import TypeAdapter

from factory.errors import ResumeRefused
from factory.namespace import FileEntry
from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import (
    Marker,
    checkpoint_path,
    complete,
    complete_checkpoints,
    files_below,
    measured,
    remove,
)
from factory.namespace.durable import write_new
from factory.observe.background import Background
from factory.reports import Phase
from factory.training.resume.identity import Identity
from factory.training.resume.manager import PUBLISHER
from factory.training.resume.once import Once
from factory.training.resume.start import (
    STATES,
    Start,
    data_state_name,
    read_states,
    states_name,
    states_of,
)

COMPLETED = "completed.jsonl"
"""File in the monitor directory: a `Phase` for each checkpoint that is complete."""

POLL_SECONDS = 0.05
_entries = TypeAdapter(dict[str, FileEntry])


class Stateful(Protocol):
    """Something about the data that a checkpoint keeps."""

    def state(self) -> Mapping[str, Any]:
        """What it knows now, as JSON: called on the training thread, so it must be cheap."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from that."""
        ...


@dataclass(frozen=True)
class Place:
    """Which rank this is, and of how many."""

    rank: int
    ranks: int
    data_rank: int
    """Data-parallel rank."""

    leads: bool
    """Whether it is the rank of its data-parallel group that speaks for the data."""


@dataclass(frozen=True)
class _Save:
    step: int
    states: dict[str, Any]


class Publisher(Callback):
    """One on each rank."""

    def __init__(
        self,
        attempt: Attempt,
        *,
        identity: Identity,
        keep: int,
        started: float,
        states: Mapping[str, Stateful],
        start: Start | None,
    ) -> None:
        self._attempt = attempt
        self._identity = identity
        self._keep = keep
        self._started = started
        self._stateful = states
        self._start = start
        self._told: list[Callable[[int], None]] = []
        self._once = Once(attempt.run, 0 if start is None else start.checkpoint.step)
        self._place = Place(0, 1, 0, leads=True)
        self._taken: deque[_Save] = deque()
        self._writer: Background[_Save] | None = None

    def on_train_start(self, context: CallbackContext) -> None:
        """The loader is built and stands where it was: the other states go on from there too."""
        self._place = place()
        if self._start is not None and not self._start.fresh_data:
            self._restore(self._start)
        context.user_state[PUBLISHER] = self
        self._writer = Background("publisher", self._complete)

    def _restore(self, start: Start) -> None:
        data = start.data(self._attempt.run, self._attempt.number)
        if data is None or not start.redistributed:
            found = states_of(start.checkpoint, self._place.data_rank)
        else:
            found = read_states(data / start.checkpoint.path.name, self._place.data_rank)
        for name, stateful in self._stateful.items():
            if name in found:
                stateful.restore(found[name])
            elif not start.redistributed:  # which begins the chains anew
                raise ResumeRefused(
                    f"The checkpoint of step {start.checkpoint.step} holds no state of the {name}, "
                    "so it was saved by other code. `--fresh-data` goes on with its weights, and "
                    "with the data from their beginning."
                )

    def tell(self, saving: Callable[[int], None]) -> None:
        """Tell this, too, of each step of which a checkpoint begins to be saved."""
        self._told.append(saving)

    def has(self, step: int) -> bool:
        """Whether this step needs no save: it is the one last saved, or where the attempt began."""
        return self._once.has(step)

    def before_save(self, step: int) -> None:
        """Take the states of the step that is being saved.

        Raises:
            Superseded: the run was taken over by a later attempt.
            RunFailed: the directory that it would be saved into holds a complete checkpoint.
        """
        self._check()
        self._attempt.check()
        self._once.begin(step)
        states = {name: dict(one.state()) for name, one in self._stateful.items()}
        self._taken.append(_Save(step, states))
        for told in self._told:
            told(step)

    def on_checkpoint_save(self, context: CallbackContext) -> None:
        """Bridge has saved the oldest of them: hand it to the thread that completes it."""
        if self._writer is None:
            raise RuntimeError("A checkpoint was saved before training began; a defect.")
        self._writer.put(self._taken.popleft())

    def on_train_step_end(self, context: CallbackContext) -> None:
        """A checkpoint that could not be completed ends the run."""
        self._check()

    def close(self) -> None:
        """Wait until every checkpoint that was saved is complete.

        Raises:
            Exception: one could not be completed.
        """
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _check(self) -> None:
        if self._writer is not None:
            self._writer.check()

    def _complete(self, save: _Save) -> None:
        began = time.monotonic()
        directory = checkpoint_path(self._attempt.run, save.step)
        self._attempt.run.directory(str((directory / STATES).relative_to(self._attempt.run.path)))
        mine = [name for name in files_below(directory) if self._wrote(name)]
        if self._place.leads:
            name = states_name(self._place.data_rank)
            _replace(directory / name, json.dumps(save.states).encode())
            mine += [name, data_state_name(self._place.data_rank)]
        entries = measured(directory, mine)
        if self._place.rank:
            _replace(directory / self._note(self._place.rank), _entries.dump_json(entries))
            return
        files = self._everyones(directory, entries)
        self._attempt.check()
        marker = Marker(
            step=save.step, attempt=self._attempt.number, identity=self._identity, files=files
        )
        complete(directory, marker)
        self._say(save.step, files, time.monotonic() - began)
        self._remove_old()

    def _wrote(self, name: str) -> bool:
        """Bridge's files say who wrote them: `__RANK_WRITER.distcp`."""
        return name.startswith(f"__{self._place.rank}_")

    def _note(self, rank: int) -> str:
        """Where a rank tells rank 0 what it found; none of the checkpoint's own files."""
        return f"{STATES}/.found-{self._attempt.number}-{rank}"

    def _everyones(self, directory: Path, own: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
        files = dict(own)
        for rank in range(1, self._place.ranks):
            note = directory / self._note(rank)
            while not note.exists():
                time.sleep(POLL_SECONDS)
            files |= _entries.validate_json(note.read_bytes())
            note.unlink()
        files |= measured(directory, set(files_below(directory)) - files.keys())
        return dict(sorted(files.items()))

    def _say(self, step: int, files: Mapping[str, FileEntry], seconds: float) -> None:
        size = sum(entry.size for entry in files.values())
        phase = Phase(
            name="complete",
            detail=f"checkpoint of step {step}: {len(files)} files, {size / 2**20:,.1f} MiB, "
            f"hashed in {seconds:.1f} s",
            seconds=max(0.0, time.time() - self._started),
        )
        self._attempt.run.append(f"monitor/{COMPLETED}", phase.model_dump_json())

    def _remove_old(self) -> None:
        if self._keep > 0:
            for checkpoint in complete_checkpoints(self._attempt.run)[: -self._keep]:
                remove(checkpoint.path)


def place() -> Place:
    """Of this process, once the process groups are there."""
    from megatron.core import parallel_state
    from torch import distributed

    state: Any = parallel_state
    others = (
        state.get_tensor_model_parallel_rank(),
        state.get_pipeline_model_parallel_rank(),
        state.get_context_parallel_rank(),
    )
    return Place(
        rank=distributed.get_rank(),
        ranks=distributed.get_world_size(),
        data_rank=state.get_data_parallel_rank(),
        leads=not any(others),
    )


def _replace(path: Path, data: bytes) -> None:
    scratch = path.with_name(f".{path.name}.writing")
    scratch.unlink(missing_ok=True)
    write_new(scratch, data)
    scratch.replace(path)
