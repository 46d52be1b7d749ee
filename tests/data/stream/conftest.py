"""Sources made of generated samples, the lock of a mix of them, and streams over it."""

import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from factory.data import Loss, Sample, energon
from factory.data.encoding import Encoder, load
from factory.data.mixing import LockedPacking, LockedSource, LockedStage, MixLock
from factory.data.stream.build import batches, loader
from factory.data.stream.reader import Reader
from tests.shards import in_order, write_shards

CHAT, LONG, SHORT = "public/tools/chat", "public/text/long", "public/text/short"


def documents(name: str, count: int, words: Callable[[random.Random], int]) -> list[Sample]:
    chance = random.Random(name)
    return [
        Sample.document(
            id=f"{name}-{number}",
            title=f"{name} {number}",
            sections=[("H", ". ".join(f"{chance.random():.4f}" for _ in range(words(chance))))],
            license="CC0-1.0",
        )
        for number in range(count)
    ]


def questions(name: str, count: int) -> list[Sample]:
    chance = random.Random(name)
    return [
        Sample.question(
            id=f"{name}-{number}",
            question=f"What is {number} " + "and so on " * chance.randrange(1, 8),
            answer=f"{number * number}",
            license="CC0-1.0",
        )
        for number in range(count)
    ]


def write(folder: Path, key: str, samples: Sequence[Sample], policy: Loss | None = None) -> Path:
    """A version of a split, in several shards, as the step `energon` leaves it."""
    folder.mkdir(parents=True)
    made = in_order([replace(one, source=key) for one in samples])
    shards = len(write_shards(folder, made, per_shard=40))
    energon.write_loss(folder, policy or Loss())
    energon.prepare(folder, shards, lambda _: None)
    return folder


@dataclass(frozen=True)
class Mixture:
    """Sources on disk, and the lock of a mix of them."""

    folders: Mapping[str, Path]
    lock: MixLock

    def changed(self, **fields: Any) -> "Mixture":
        return replace(self, lock=self.lock.model_copy(update=fields))

    def packed(self, **fields: Any) -> "Mixture":
        return self.changed(packing=self.lock.packing.model_copy(update=fields))

    def source(self, key: str, **fields: Any) -> "Mixture":
        sources = [
            one.model_copy(update=fields) if one.key == key else one for one in self.lock.sources
        ]
        return self.changed(sources=tuple(sources))

    def only(self, key: str) -> "Mixture":
        (chosen,) = (one for one in self.lock.sources if one.key == key)
        stage = self.lock.stages[0].model_copy(update={"weights": (1.0,)})
        return self.changed(sources=(chosen,), stages=(stage,))

    def stages(self, *stages: tuple[int, int, Sequence[float]]) -> "Mixture":
        made = [
            LockedStage(from_step=step, context=context, weights=tuple(weights))
            for step, context, weights in stages
        ]
        return self.changed(stages=tuple(made))

    def loader(self, **place: Any) -> Any:
        given = {"seed": 5, "micro_batch_size": 2, "global_batch_size": 8, **place}
        return loader(batches(self.lock, self.folders, Reader(**given)))


def mixture_of(
    folders: Mapping[str, Path], counts: Mapping[str, int], weights: Mapping[str, float]
) -> Mixture:
    """The lock of a mix by samples, in bytes and sequences of 256."""
    encoder = Encoder(load("bytes"), chat="plain")
    sources = [
        LockedSource(
            key=key,
            version="v",
            role="domain_shift",
            weight=weights[key],
            max_epochs=None,
            max_share=None,
            overflow="split",
            samples=counts[key],
            licenses=("CC0-1.0",),
        )
        for key in folders
    ]
    lock = MixLock(
        name="made",
        basis="sample",
        sources=tuple(sources),
        stages=(
            LockedStage(
                from_step=0, context=256, weights=tuple(source.weight for source in sources)
            ),
        ),
        tokenizer="bytes",
        tokenizer_identity=encoder.tokenizer.identity,
        chat="plain",
        template_identity=encoder.identity,
        packing=LockedPacking(regime="boundary_aware", buffer=64, alignment=1, shuffle=20),
    )
    return Mixture(folders, lock)


@pytest.fixture(scope="session")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Mixture:
    base = tmp_path_factory.mktemp("mixture")
    made = {
        LONG: documents("long", 30, lambda chance: chance.randrange(20, 150)),
        SHORT: documents("short", 120, lambda chance: chance.randrange(1, 30)),
        CHAT: questions("chat", 90),
    }
    folders = {key: write(base / key, key, samples) for key, samples in made.items()}
    counts = {key: len(samples) for key, samples in made.items()}
    return mixture_of(folders, counts, {LONG: 0.1, SHORT: 0.5, CHAT: 0.4})


def read(loader: Any, count: int) -> Iterator[dict[str, Any]]:
    """So many batches. Energon always asks torch for pinned memory, also where there is no GPU."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="'pin_memory' argument is set as true")
        for _, batch in zip(range(count), loader, strict=False):
            yield batch


def stop(loader: Any) -> None:
    """End the processes of a loader; Energon's wait five seconds for each other."""
    import torch

    running: Any = loader._iterator if loader.num_workers else None
    if running is not None:
        torch._C._remove_worker_pids(id(running))  # that they are killed is no failure
        running._worker_pids_set = False
        for worker in running._workers:
            worker.kill()
