"""Build: the stream of a run on one rank, from the lock of its mix and the versions that it names.

Imports Energon, and with it torch, when it is called.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factory.data.encoding import Encoder, images, load
from factory.data.energon import count
from factory.data.loss import FILE as LOSS
from factory.data.loss import Loss
from factory.data.mixing import MixLock
from factory.data.stream.drawing import Drawing, Encodes
from factory.data.stream.reader import Reader
from factory.errors import SpecError
from factory.settings import tokenize_on_one_thread

if TYPE_CHECKING:
    from megatron.energon import SavableDataLoader

    from factory.data.stream.batches import Batches

SLOW_SECONDS = 60.0
"""After so long without a batch, a loader worker logs where it is."""

PART = "train"
"""The part that is asked of Energon. A directory of ours holds one split, under every part."""

REMEMBERED_SECONDS = 5.0
"""How often a loader worker notes where it is. A continued run makes batches again from there."""


def encoder_of(
    lock: MixLock, folders: Mapping[str, Path], *, longest: int | None = None
) -> Encoder:
    """The encoder that a lock was made with.

    Args:
        lock: of the mix.
        folders: directory of every `<key>/energon/train`, by the key of its dataset.
        longest: see `Encoder`; the first stage's context if left out.

    Raises:
        SpecError: the tokenizer or its chat template is another one now.
    """
    encoder = Encoder(
        load(lock.tokenizer),
        chat=lock.chat,
        longest=lock.stages[0].context if longest is None else longest,
        policies={key: _policy(folders[key]) for key in lock.keys},
    )
    written = "way of writing conversations"
    _compare(lock, "tokenizer", encoder.tokenizer.identity, lock.tokenizer_identity)
    _compare(lock, written, encoder.identity, lock.template_identity)
    return encoder


def drawing_of(
    lock: MixLock, folders: Mapping[str, Path], encoder: Encodes | None = None
) -> Drawing:
    """How entries become sequences.

    Raises:
        SpecError: tokenizer, chat template or image processor is another one than in the lock; or
            the regime would cut through images.
    """
    if lock.image_processor is None:
        return Drawing(lock=lock, encoder=encoder or encoder_of(lock, folders))
    if lock.packing.regime == "naive":
        raise SpecError(
            "The regime 'naive' cuts where a sequence is full, through images as well, and a model "
            "cannot read half of one. Set dataset.regime to boundary_aware or none."
        )
    processor = images.load(lock.tokenizer)
    _compare(lock, "image processor", processor.identity, lock.image_processor)
    # What is longer than a context is only known when its images have their tokens.
    return Drawing(
        lock=lock, encoder=encoder or encoder_of(lock, folders, longest=0), images=processor
    )


def batches(
    lock: MixLock,
    folders: Mapping[str, Path],
    reader: Reader,
    *,
    encoder: Encodes | None = None,
    group: Any = None,
) -> "Batches":
    """The batches of one rank, as a dataset of Energon that can be saved.

    Args:
        lock: of the mix.
        folders: directory of every `<key>/energon/train`, by the key of its dataset.
        reader: which part of the stream.
        encoder: another one than the lock's.
        group: of the data-parallel ranks, as torch knows it.

    Raises:
        SpecError: a version is not what the lock says, or too small for so many readers.
    """
    from megatron.energon import WorkerConfig
    from megatron.energon.errors import reraise_exception

    from factory.data.stream.batches import Batches
    from factory.data.stream.blend import Blend

    drawing = drawing_of(lock, folders, encoder)
    workers = WorkerConfig(
        rank=reader.rank,
        world_size=reader.ranks,
        num_workers=reader.workers,
        data_parallel_group=group,
        seed_offset=reader.seed,
        global_error_handler=reraise_exception,  # Energon's default logs and skips the sample
    )
    sources = _sources(lock, folders, reader, workers)
    blend = Blend(sources, lock, drawing, worker_config=workers)
    return Batches(blend, reader, worker_config=workers)


def loader(dataset: "Batches") -> "SavableDataLoader[dict[str, Any]]":
    """Energon's loader of them, whose state continues exactly."""
    from megatron.energon import get_savable_loader

    if dataset.worker_config.num_workers:
        tokenize_on_one_thread()
    return get_savable_loader(
        dataset,
        checkpoint_every_sec=REMEMBERED_SECONDS,
        # Its thread holds the dataset with every open file for as long as its process lives.
        watchdog_timeout_seconds=SLOW_SECONDS if dataset.worker_config.num_workers else None,
    )


def _sources(lock: MixLock, folders: Mapping[str, Path], reader: Reader, workers: Any) -> list[Any]:
    from megatron.energon.epathlib import EPath
    from megatron.energon.metadataset import load_dataset

    from factory.data.stream.source import Source

    made: list[Source] = []
    before = 0
    for source in lock.sources:
        folder = folders[source.key]
        _check(source.train, count(folder), source.samples, reader)
        (found,) = (
            load_dataset(EPath(folder))
            .get_datasets(
                training=True,
                split_part=PART,
                worker_config=workers,
                max_samples_per_sequence=lock.packing.shuffle,
                decoder=None,  # texts are parsed and images decoded by us
            )
            .datasets
        )
        # Where a source does not divide among readers, another one has more of the next source.
        dataset: Any = found.dataset.build(worker_rotation_offset=before % reader.readers)
        made.append(Source(dataset, shuffle=lock.packing.shuffle, worker_config=workers))
        before += source.samples
    return made


def _compare(lock: MixLock, what: str, now: str, then: str) -> None:
    if now != then:
        raise SpecError(
            f"The {what} of {lock.tokenizer} has the identity {now}, but the mix was locked "
            f"with {then}: other tokens would come of the same samples. Bring back the files "
            "that were there, or lock the mix again for a new run."
        )


def _check(key: str, found: int, locked: int, reader: Reader) -> None:
    if found != locked:
        raise SpecError(
            f"{key} holds {found:,} samples, but the mix was locked with {locked:,}: it is another "
            "version than the lock names. Launch the run again."
        )
    if found < reader.readers:
        raise SpecError(
            f"{key} has {found:,} samples for {reader.readers} readers, so some would have none "
            "of it and its share would be smaller than declared. Use fewer workers or "
            "loader_workers, or take the dataset out of the mix."
        )


def _policy(folder: Path) -> Loss:
    import json

    return Loss.from_dict(json.loads((folder / LOSS).read_bytes()))
