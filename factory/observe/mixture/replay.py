"""Replay: a run's ledger made again from its data alone, without a model.

The stream of every data-parallel rank is read as the run read it, and counted. What comes of it
must be what the run has written, to the last token.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from factory.data.mixing.lock import MixLock
from factory.data.stream.build import batches, loader
from factory.data.stream.reader import Reader
from factory.observe.mixture.ledger import Ledger
from factory.observe.mixture.realized import totals_of
from factory.observe.mixture.totals import COLUMNS, POSITIONS, Totals, none
from factory.reports import MixtureLine, Reading

type Progress = Callable[[int, int], None]
"""Told how many batches of how many were counted."""


def replayed(
    lock: MixLock,
    folders: Mapping[str, Path],
    reading: Reading,
    steps: Sequence[int],
    progress: Progress,
) -> list[Totals]:
    """What all ranks together have been given, after each of some numbers of steps.

    Args:
        lock: the mix of the run.
        folders: directory of every `<key>/energon/train`, by the key of its dataset.
        reading: how the run read it.
        steps: counted from where the data begin, ascending.
        progress: is told how far it is.
    """
    found = [none(len(lock.sources)) for _ in steps]
    with warnings.catch_warnings():
        # Energon asks torch for pinned memory, also where there is no GPU to copy it to.
        warnings.filterwarnings("ignore", message="'pin_memory' argument is set as true")
        for rank in range(reading.ranks):
            counted = _of_rank(lock, folders, _reader(reading, rank), steps)
            for at, totals in enumerate(counted):
                found[at] = found[at] + totals
                progress(rank * len(steps) + at + 1, reading.ranks * len(steps))
    return found


def differences(lines: Sequence[MixtureLine], found: Sequence[Totals]) -> list[str]:
    """A sentence for every number of a line that a replay does not agree with."""
    told: list[str] = []
    for line, totals in zip(lines, found, strict=True):
        live = totals_of(line)
        for at, source in enumerate(line.sources):
            for column, name in enumerate(COLUMNS):
                was, now = int(live.counts[at, column]), int(totals.counts[at, column])
                if was != now:
                    told.append(_told(line.step, f"{name} of {source.source}", was, now))
        for was, now, name in zip(
            live.positions.tolist(), totals.positions.tolist(), POSITIONS, strict=True
        ):
            if was != now:
                told.append(_told(line.step, name, was, now))
        told += _dropped_differently(line, live, totals)
    return told


def _dropped_differently(line: MixtureLine, live: Totals, totals: Totals) -> Iterator[str]:
    for at, reason in sorted(live.dropped.keys() | totals.dropped.keys()):
        was = live.dropped.get((at, reason), (0, 0))
        now = totals.dropped.get((at, reason), (0, 0))
        if was != now:
            name = f"samples and tokens of {line.sources[at].source} dropped ({reason})"
            yield _told(line.step, name, was, now)


def _told(step: int, name: str, was: object, now: object) -> str:
    return f"step {step:,}: {name}: {was} in the run, {now} in the replay"


def _reader(reading: Reading, rank: int) -> Reader:
    return Reader(
        seed=reading.seed,
        micro_batch_size=reading.micro_batch_size,
        global_batch_size=reading.global_batch_size,
        rank=rank,
        ranks=reading.ranks,
        workers=reading.workers,
    )


def _of_rank(
    lock: MixLock, folders: Mapping[str, Path], reader: Reader, steps: Sequence[int]
) -> Iterator[Totals]:
    ledger = Ledger([source.samples for source in lock.sources])
    stream = iter(loader(batches(lock, folders, reader)))
    given = 0
    for step in steps:
        while given < step * reader.batches_per_step:
            ledger.on_batch(next(stream)["account"])
            given += 1
        yield ledger.totals
