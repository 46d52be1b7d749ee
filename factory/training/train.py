"""Train: what one rank does. A launch to Bridge's `ConfigContainer`, and on to Bridge's `pretrain`.

Ranks, addresses and the processes themselves are in `workers`; what differs between a laptop and
H100s in `profiles`.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

from factory.discovery import check_overrides
from factory.errors import SpecError
from factory.namespace import RunDirectory
from factory.spec import Launch
from factory.training import profiles, tracking
from factory.training.assign import assign

if TYPE_CHECKING:
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import ConfigContainer

BLEND_FILE = "blend.yaml"
MONITOR = "monitor"
"""Directory of what a run says about itself while it runs."""

SLOW_IMPORTS = (
    "megatron.bridge.training.pretrain",
    "factory.observe.progress",
    "factory.training.forward",
    "factory.training.loader",
    "mlflow",
)


@dataclass(frozen=True)
class Job:
    """What a rank needs to know; travels to it by pickle."""

    launch: Launch
    run: RunDirectory
    state: Path
    """This machine's own files: MLflow."""

    started: float
    """When the driver started, as `time.time()`."""


def preload(launch: Launch) -> None:
    """Import everything that takes long, while the cluster is still busy with other things."""
    with profiles.hardware(launch.profile):
        for name in SLOW_IMPORTS:
            importlib.import_module(name)


def build(job: Job) -> ConfigContainer:
    """The full configuration of the run, before Bridge has validated it.

    Raises:
        SpecError: an override cannot be applied, or the machine is not of the profile's kind.
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
    return config


def write_config(config: ConfigContainer, run: RunDirectory, attempt: int) -> str:
    """Write `config.yaml` and return its sha256. A later attempt has a file of its own."""
    scratch = run.directory(MONITOR) / f".config-{attempt}.yaml"
    config.to_yaml(str(scratch))
    text = scratch.read_bytes()
    scratch.unlink()
    run.create("config.yaml" if attempt == 1 else f"config.{attempt}.yaml", text)
    return hashlib.sha256(text).hexdigest()


def train(job: Job, config: ConfigContainer, *, rank: int) -> None:
    """Bridge's `pretrain` on this rank; returns when the last checkpoint is on disk."""
    launch = job.launch
    with ExitStack() as stack:
        stack.enter_context(profiles.hardware(launch.profile))
        from megatron.bridge.training.pretrain import pretrain

        from factory.observe.progress import Progress
        from factory.training.forward import forward_step

        if rank == launch.spec.ranks - 1:
            stack.enter_context(tracking.active(job.state, launch, job.run))
        progress = Progress(
            job.run.directory(MONITOR),
            interval=config.logger.log_interval,
            steps=_required(config.train.train_iters, "train.train_iters"),
            started=job.started,
        )
        stack.callback(progress.close)
        # Several hundred lines on standard output, all of them in `config.yaml`.
        stack.enter_context(patch.object(type(config), "log_non_default_values", _silent))
        pretrain(config, forward_step, callbacks=[progress])


def _place(config: ConfigContainer, job: Job) -> None:
    """Where this run reads and writes, and what its spec says."""
    from factory.training.loader import BlendProvider

    launch = job.launch
    checkpoints = str(job.run.directory("checkpoints"))
    config.rng.seed = launch.spec.seed
    config.dataset = BlendProvider(
        path=str(job.run.path / BLEND_FILE),
        seq_length=cast("GPTModelProvider", config.model).seq_length,
        micro_batch_size=_required(config.train.micro_batch_size, "train.micro_batch_size"),
        seed=launch.spec.seed,
        num_workers=launch.spec.loader_workers,
        pin_memory=launch.profile != "cpu",
    )
    config.checkpoint.save = checkpoints
    config.checkpoint.load = checkpoints if launch.attempt > 1 else None
    config.logger.tensorboard_dir = None
    config.logger.tensorboard_log_interval = config.logger.log_interval  # of MLflow as well
    config.logger.logging_level = logging.WARNING
    for name, value in tracking.logger_settings(job.state, launch).items():
        assign(config, f"logger.{name}", value)


def _required(value: int | None, path: str) -> int:
    if value is None:
        raise SpecError(f"The recipe sets no {path}, which a run needs.")
    return value


def _silent(config: ConfigContainer) -> None:
    del config
