"""Train: what one rank does. A launch to Bridge's `ConfigContainer`, and on to Bridge's `pretrain`.

Ranks, addresses and the processes themselves are in `workers`; what differs between a laptop and
H100s in `profiles`.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from factory.discovery import check_overrides
from factory.namespace import RunDirectory
from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import CHECKPOINTS
from factory.spec import Launch
from factory.training import profiles, reading, tracking
from factory.training.assign import assign
from factory.training.callbacks import MONITOR, callbacks
from factory.training.resume.identity import (
    DATA_PARALLEL_SIZE,
    identity_of,
    refuse_other_data,
)
from factory.training.resume.redistribute import MOVED, refuse_other_readers
from factory.training.resume.start import Start
from factory.training.resume.watch import Watch

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

SLOW_IMPORTS = (
    "megatron.bridge.training.pretrain",
    "factory.observe.mixture.callback",
    "factory.observe.progress",
    "factory.training.forward",
    "factory.training.loader",
    "factory.training.resume.chain",
    "factory.training.resume.publisher",
    "mlflow",
)


@dataclass(frozen=True)
class Job:
    """What a rank needs to know; travels to it by pickle."""

    launch: Launch
    attempt: Attempt
    state: Path
    """This machine's own files: MLflow."""

    started: float
    """When the driver started, as `time.time()`."""

    start: Start | None = None
    """The checkpoint to go on from."""

    @property
    def run(self) -> RunDirectory:
        """The run's directory."""
        return self.attempt.run


def preload(launch: Launch) -> None:
    """Import everything that takes long, while the cluster is still busy with other things."""
    with profiles.hardware(launch.profile):
        for name in SLOW_IMPORTS:
            importlib.import_module(name)


def build(job: Job) -> ConfigContainer:
    """The full configuration of the run, before Bridge has validated it.

    Raises:
        SpecError: an override cannot be applied, or the machine is not of the profile's kind.
        ResumeRefused: the data would not continue as they were.
    """
    launch = job.launch
    with profiles.hardware(launch.profile):
        module, _, function = launch.spec.recipe.partition(".")
        recipe = importlib.import_module(f"factory.training.recipes.{module}")
        config: ConfigContainer = getattr(recipe, function)()
        for path, value in check_overrides(launch.spec.recipe, launch.spec.overrides).items():
            assign(config, path, value)
        profiles.apply(config, launch.profile)
        _place(config, job)
    if job.start is not None and not job.start.fresh_data:
        now = identity_of(config, launch)
        if job.start.redistributed:
            refuse_other_readers(job.start.checkpoint, now)
        moved = MOVED if job.start.redistributed else frozenset[str]()
        refuse_other_data(job.start.checkpoint, now, moved=moved)
    return config


def redistributed(job: Job, config: ConfigContainer) -> None:
    """Make the states of the data anew, for as many data-parallel ranks as there are now.

    Raises:
        ResumeRefused: they cannot be continued exactly there.
    """
    from factory.training.resume.redistribute import redistribute

    if job.start is None or not job.start.redistributed:
        return
    ranks = identity_of(config, job.launch)[DATA_PARALLEL_SIZE]
    root = job.start.data(job.run, job.launch.attempt)
    if root is None or not isinstance(ranks, int):
        raise RuntimeError("Data were to be redistributed that are not continued; a defect.")
    folder = root / job.start.checkpoint.path.name
    job.run.directory(str(folder.relative_to(job.run.path)))
    redistribute(job.start.checkpoint, ranks, folder)


def write_config(config: ConfigContainer, run: RunDirectory, attempt: int) -> str:
    """Write `config.yaml` and return its sha256. A later attempt has a file of its own."""
    scratch = run.directory(MONITOR) / f".config-{attempt}.yaml"
    config.to_yaml(str(scratch))
    text = scratch.read_bytes()
    scratch.unlink()
    run.create("config.yaml" if attempt == 1 else f"config.{attempt}.yaml", text)
    return hashlib.sha256(text).hexdigest()


def train(job: Job, config: ConfigContainer, *, rank: int) -> bool:
    """Bridge's `pretrain` on this rank; returns when the last checkpoint is complete.

    Returns whether it was told to stop before the last step.
    """
    launch = job.launch
    with ExitStack() as stack:
        stack.enter_context(profiles.hardware(launch.profile))
        from megatron.bridge.training.pretrain import pretrain

        from factory.training.forward import step_of

        if rank == launch.spec.ranks - 1:
            stack.enter_context(tracking.active(job.state, launch, job.run))
        # Several hundred lines on standard output, all of them in `config.yaml`.
        stack.enter_context(patch.object(type(config), "log_non_default_values", _silent))
        stack.enter_context(Watch(job.attempt))
        chosen = stack.enter_context(callbacks(job, config))
        return _ends_early(lambda: pretrain(config, step_of(config), callbacks=chosen))


def _ends_early(pretrain: Callable[[], None]) -> bool:
    """Bridge leaves by `sys.exit` when it has saved for a signal, and logs that as an error."""
    quiet = _LeavingIsNoFailure()
    logger = logging.getLogger("megatron.bridge.training.pretrain")
    logger.addFilter(quiet)
    try:
        pretrain()
    except SystemExit as left:
        if left.code:
            raise
        return True
    finally:
        logger.removeFilter(quiet)
    return False


class _LeavingIsNoFailure(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not (isinstance(error, SystemExit) and not error.code)


def _place(config: ConfigContainer, job: Job) -> None:
    """Where this run reads and writes, and what its spec says."""
    from megatron.bridge.utils.instantiate_utils import register_allowed_target_prefix

    launch = job.launch
    checkpoints = str(job.run.directory(CHECKPOINTS))
    data = job.start.data(job.run, launch.attempt) if job.start else None
    config.rng.seed = launch.spec.seed
    reading.place(config, launch, job.run)
    config.dataset.dataloader_save = checkpoints
    # Bridge takes nothing for "where the weights are", and an empty path for "nowhere".
    config.dataset.dataloader_load = str(data or "")
    config.checkpoint.save = checkpoints
    config.checkpoint.load = str(job.start.checkpoint.path) if job.start else None
    register_allowed_target_prefix("factory.training")
    config.checkpoint.custom_manager_class = "factory.training.resume.manager.Manager"
    config.train.exit_signal_handler = True
    config.logger.tensorboard_dir = None
    config.logger.tensorboard_log_interval = config.logger.log_interval  # of MLflow as well
    config.logger.logging_level = logging.WARNING
    for name, value in tracking.logger_settings(job.state, launch).items():
        assign(config, f"logger.{name}", value)


def _silent(config: ConfigContainer) -> None:
    del config
