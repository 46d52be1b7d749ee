"""Callbacks: what goes along with a run inside of Megatron-Bridge, in one list.

Each is told of steps by Bridge, and of batches by the loader where it counts them. None waits for
a disk or for another machine on the thread that trains: each has a thread that writes. What a
resumption needs of them lies in every checkpoint, which the last in the list completes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from factory.errors import SpecError
from factory.reports import Reading
from factory.training import tracking
from factory.training.resume.identity import DATA_PARALLEL_SIZE, identity_of

if TYPE_CHECKING:
    from megatron.bridge.training.callbacks import Callback
    from megatron.bridge.training.config import ConfigContainer

    from factory.data.mixing.lock import MixLock
    from factory.observe.mixture.callback import Mixture
    from factory.observe.mixture.writer import Metrics, Writer
    from factory.training.loader import MixProvider
    from factory.training.resume.publisher import Stateful
    from factory.training.train import Job

MONITOR = "monitor"
"""Directory of what a run says about itself while it runs."""


@contextmanager
def callbacks(job: Job, config: ConfigContainer) -> Generator[list[Callback]]:
    """Within: this rank's callbacks, for Bridge's `pretrain`.

    Afterwards all that they write is on disk, and every checkpoint that was saved is complete.

    Raises:
        SpecError: the recipe leaves out a number that a run needs.
    """
    from factory.observe.progress import Progress
    from factory.training.resume.chain import ChainLog
    from factory.training.resume.publisher import Publisher

    spec = job.launch.spec
    progress = Progress(
        job.run.directory(MONITOR),
        interval=config.logger.log_interval,
        steps=required(config.train.train_iters, "train.train_iters"),
        started=job.started,
    )
    counting: dict[str, Mixture | ChainLog] = {}
    if spec.ledger:
        counting["mixture"] = _mixture(job, config)
    if spec.chain:
        counting["chain"] = ChainLog(job.attempt, begun(job))
    provider = cast("MixProvider", config.dataset)
    for one in counting.values():
        provider.observe(one)
    publisher = Publisher(
        job.attempt,
        identity=identity_of(config, job.launch),
        keep=config.checkpoint.most_recent_k or -1,
        started=job.started,
        states=cast("Mapping[str, Stateful]", counting),
        start=job.start,
    )
    publisher.tell(progress.before_save)
    config.checkpoint.most_recent_k = -1  # Bridge counts those that are not complete
    writing = [progress, *counting.values()]
    try:
        yield [*writing, publisher]
    except BaseException:
        for one in writing:
            with suppress(Exception):  # what ended the run is what a person must see
                one.close()
        raise
    for one in (*writing, publisher):
        one.close()


def begun(job: Job) -> int:
    """The attempt in which the data of a run begin, unless a checkpoint says otherwise.

    What ended before its first checkpoint begins again as it began, and is the same.
    """
    anew = job.start is not None or job.launch.fresh_data
    return job.launch.attempt if anew else 1


def required(value: int | None, path: str) -> int:
    """A number that a run needs of its recipe.

    Raises:
        SpecError: the recipe sets none.
    """
    if value is None:
        raise SpecError(f"The recipe sets no {path}, which a run needs.")
    return value


def _mixture(job: Job, config: ConfigContainer) -> Mixture:
    from factory.observe.mixture.callback import Mixture
    from factory.observe.mixture.plan import Plan

    lock = cast("MixProvider", config.dataset).locked()
    reading = _reading(job, config)
    begins = job.start is None or job.start.fresh_data
    return Mixture(
        Plan.of(lock, reading.readers),
        interval=config.logger.log_interval,
        steps=required(config.train.train_iters, "train.train_iters"),
        begun=begun(job),
        writer=partial(_writer, job, lock, reading if begins else None),
    )


def _reading(job: Job, config: ConfigContainer) -> Reading:
    ranks = identity_of(config, job.launch)[DATA_PARALLEL_SIZE]
    return Reading(
        begun=begun(job),
        after=0,
        seed=job.launch.spec.seed,
        ranks=cast("int", ranks),
        workers=job.launch.spec.loader_workers,
        micro_batch_size=required(config.train.micro_batch_size, "train.micro_batch_size"),
        global_batch_size=required(config.train.global_batch_size, "train.global_batch_size"),
    )


def _writer(job: Job, lock: MixLock, begins: Reading | None, after: int) -> Writer:
    from factory.observe.mixture.writer import Writer

    return Writer(
        job.run,
        lock,
        attempt=job.launch.attempt,
        after=after,
        begins=None if begins is None else begins.model_copy(update={"after": after}),
        metrics=_metrics(job),
    )


def _metrics(job: Job) -> Metrics:
    """To the run's MLflow run, from any thread."""
    return partial(tracking.log, job.state, job.launch, job.run)
