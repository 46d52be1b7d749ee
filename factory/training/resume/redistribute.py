"""Redistribute: the data of a run on another number of data-parallel ranks, continued exactly.

Every loader worker keeps its part of the data and its place in it, and only moves to another rank.
So ranks times loader workers must stay what it was. The work is Energon's own, which is told here
what it does not check: where it is asked for something else it fails without a message, it forgets
which worker's turn it was, and it fails where there is one file.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import JsonValue

from factory.errors import ResumeRefused
from factory.namespace.checkpoints import Checkpoint
from factory.training.resume.identity import (
    DATA_PARALLEL_SIZE,
    GLOBAL_BATCH_SIZE,
    LOADER_WORKERS,
    MICRO_BATCH_SIZE,
)
from factory.training.resume.start import data_state_name, states_name, states_of

MOVED = frozenset({DATA_PARALLEL_SIZE, LOADER_WORKERS})
"""What a redistribution may change of a run's identity."""


def refuse_other_readers(checkpoint: Checkpoint, now: Mapping[str, JsonValue]) -> None:
    """Return if as many processes read now as then, and in each step equally much of each.

    Raises:
        ResumeRefused: they do not; the message says what to set.
    """
    then = checkpoint.marker.identity
    if not (_count(then, LOADER_WORKERS) and _count(now, LOADER_WORKERS)):
        raise ResumeRefused(
            f"The run cannot go on from step {checkpoint.step} on other ranks: then it had "
            f"{_count(then, LOADER_WORKERS)} loader workers a rank, now "
            f"{_count(now, LOADER_WORKERS)}, and what a rank read in its own process (0) cannot "
            "be moved. It needs at least 1, then and now."
        )
    before, after = _readers(then), _readers(now)
    if before == after:
        _refuse_uneven_steps(checkpoint)
        return
    ranks = _count(now, DATA_PARALLEL_SIZE)
    hint = (
        f"With {ranks} ranks, set loader_workers to {before // ranks}."
        if before % ranks == 0
        else f"{before} processes cannot be shared by {ranks} ranks: choose a divisor of {before}."
    )
    raise ResumeRefused(
        f"At step {checkpoint.step}, {before} processes read the data "
        f"({_count(then, DATA_PARALLEL_SIZE)} ranks with {_count(then, LOADER_WORKERS)} loader "
        f"workers), now {after} would ({ranks} with {_count(now, LOADER_WORKERS)}). Each keeps its "
        f"part, so their number cannot change. {hint}"
    )


def _refuse_uneven_steps(checkpoint: Checkpoint) -> None:
    """Return if a step takes equally many batches of each reader.

    Otherwise which of its workers a rank's step begins with differs from step to step, and so does
    what a step is made of once the readers are on other ranks.
    """
    then = checkpoint.marker.identity
    sequences, micro = _count(then, GLOBAL_BATCH_SIZE), _count(then, MICRO_BATCH_SIZE)
    if not micro or sequences % (micro * _readers(then)):
        raise ResumeRefused(
            f"The run cannot go on from step {checkpoint.step} on other ranks: a step of "
            f"{sequences} sequences in batches of {micro} is not shared equally by the "
            f"{_readers(then)} processes that read, so on other ranks its steps would be of other "
            "batches. Go on with as many ranks and loader workers as then, or with `--fresh-data`."
        )


def redistribute(checkpoint: Checkpoint, ranks: int, directory: Path) -> None:
    """Write the states of a checkpoint for so many data-parallel ranks, in Bridge's form.

    Raises:
        ResumeRefused: the workers are not equally far, so their order would change.
    """
    before = _count(checkpoint.marker.identity, DATA_PARALLEL_SIZE)
    found = _redistributed([_loader_state(checkpoint, rank) for rank in range(before)], ranks)
    states = _states([states_of(checkpoint, rank) for rank in range(before)], ranks)
    import torch

    for rank, (loader, state) in enumerate(zip(found, states, strict=True)):
        torch.save({"dataloader_state_dict": loader}, directory / data_state_name(rank))
        (directory / states_name(rank)).parent.mkdir(exist_ok=True)
        (directory / states_name(rank)).write_text(json.dumps(state), encoding="utf-8")


def _loader_state(checkpoint: Checkpoint, rank: int) -> Any:
    from megatron.bridge.training.checkpointing import energon_torch_load

    load: Any = energon_torch_load
    state = load(str(checkpoint.path / data_state_name(rank)))["dataloader_state_dict"]
    if state.next_worker_id:
        raise ResumeRefused(
            f"At step {checkpoint.step}, it is the turn of loader worker {state.next_worker_id} of "
            f"rank {rank}, in the middle of a round: on other ranks the batches would come in "
            "another order. Go on from a checkpoint at which all workers have given equally many, "
            "or with `--fresh-data`."
        )
    return state


def _redistributed(states: Sequence[Any], ranks: int) -> list[Any]:
    """By Energon's own command, which takes two files or more: so each reader has one."""
    import torch
    from megatron.energon.epathlib import EPath
    from megatron.energon.savable_loader import SavableDataLoaderState
    from megatron.energon.tools.checkpoint import command_redist

    readers = [
        SavableDataLoaderState(
            worker_states=[worker],
            next_worker_id=0,
            micro_batch_size=state.micro_batch_size,
        )
        for state in states
        for worker in state.worker_states
    ]
    if len(readers) == 1:
        return readers
    with TemporaryDirectory() as folder:
        before = [Path(folder) / f"reader-{number:05d}.pt" for number in range(len(readers))]
        for path, reader in zip(before, readers, strict=True):
            torch.save(reader, path)
        after = Path(folder) / "redistributed"
        after.mkdir()  # Energon's own call makes none
        command: Any = command_redist.callback
        command([EPath(str(path)) for path in before], EPath(str(after)), ranks)
        made = [after / path.name for path in before[:ranks]]
        return [torch.load(path, weights_only=False) for path in made]  # written just now


def _states(states: Sequence[Mapping[str, Any]], ranks: int) -> list[dict[str, Any]]:
    """Our own states. The chains begin anew, since each was of what one rank has read."""
    from factory.observe.mixture.callback import redistributed_states

    if not all("mixture" in state for state in states):  # a run that keeps no ledger
        return [{} for _ in range(ranks)]
    moved = redistributed_states([state["mixture"] for state in states], ranks)
    return [{"mixture": one} for one in moved]


def _readers(identity: Mapping[str, JsonValue]) -> int:
    return _count(identity, DATA_PARALLEL_SIZE) * _count(identity, LOADER_WORKERS)


def _count(identity: Mapping[str, JsonValue], name: str) -> int:
    found = identity.get(name)
    return found if isinstance(found, int) else 0
