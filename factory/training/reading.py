"""Reading: what a run reads of its mix, written into its directory and into its configuration.

The driver locks the mix once more, with the versions that the launch pins; each rank reads what is
written there. The stream that comes of it is in `factory.data.stream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from factory.data.encoding import images, load
from factory.data.mixing.lock import MixLock
from factory.data.mixing.of_runs import goes_on_with, keep, lock_path
from factory.data.mixing.resolve import resolve
from factory.data.mixing.settings import DataSettings
from factory.data.mixing.words import changed
from factory.discovery import mixes, recipe_values
from factory.errors import ResumeRefused, SpecError
from factory.keys import parse
from factory.namespace import Namespace, RunDirectory
from factory.spec import Launch
from factory.training import vision_tokens

if TYPE_CHECKING:
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import ConfigContainer


def write_lock(namespace: Namespace, launch: Launch, run: RunDirectory) -> MixLock:
    """The lock of the launch's mix, as it is in the run's directory afterwards.

    Raises:
        SpecError: the mix cannot be locked, or not as the gate did.
        ResumeRefused: the run has a lock already, and with these settings and versions it would
            be another one; with fresh data it gets that one.
    """
    before = goes_on_with(run)
    lock = _resolved(namespace, launch, before)
    if before is None or before.hash == lock.hash:
        _refuse_other(launch, lock)
        return keep(run, launch.attempt, before or lock)
    if launch.attempt > 1 and launch.fresh_data:
        return keep(run, launch.attempt, lock)
    differences = "\n".join(f"- {line}" for line in changed(before, lock))
    raise ResumeRefused(
        f"Run {launch.run_id} reads what its mix was locked with ({before.hash[:12]}), and it "
        f"would be locked with {lock.hash[:12]} by what is here now:\n{differences}\n{_AS_IT_WAS}"
    )


def _resolved(namespace: Namespace, launch: Launch, before: MixLock | None) -> MixLock:
    spec = launch.spec
    mix = mixes()[spec.mix]
    versions = {
        key: namespace.version(parse(key), version)
        for key, version in launch.datasets.items()
        if key.endswith("/energon/train")
    }
    read = [one.dataset.key.path for _, one in mix.entries]
    if gained := [key for key in read if f"{key}/energon/train" not in versions]:
        known = "" if before is None else f" It reads {', '.join(before.keys)}."
        raise ResumeRefused(
            f"The mix {spec.mix!r} reads {', '.join(gained)} by now, of which run {launch.run_id} "
            f"has no version.{known} {_AS_IT_WAS}"
        )
    values = recipe_values(spec.recipe, spec.overrides)
    return resolve(spec.mix, mix, versions, DataSettings.of(spec.recipe, values))


_AS_IT_WAS = (
    "Use the files and the recipe that it was locked with. `factory resume --fresh-data` goes on "
    "with the weights of its last checkpoint, and the other data from their beginning."
)


def _refuse_other(launch: Launch, lock: MixLock) -> None:
    if launch.mix_lock not in ("", lock.hash):
        raise SpecError(
            f"The gate locked the mix of run {launch.run_id} with {launch.mix_lock[:12]}, and it "
            f"would be locked with {lock.hash[:12]} here: the declaration, the recipe or the "
            "tokenizer on this side is another one. Use the gate's image and files."
        )


def place(config: ConfigContainer, launch: Launch, run: RunDirectory) -> None:
    """Say in a recipe's configuration what the run reads, and where it lies.

    Raises:
        SpecError: the recipe reads no mix, or its model has no room for the tokenizer's tokens.
    """
    from factory.training.loader import MixProvider

    reads = config.dataset
    if not isinstance(reads, MixProvider):
        raise SpecError(
            f"The recipe {launch.spec.recipe} reads a {type(reads).__name__}, not a mix. Let its "
            "`dataset` be a MixProvider of factory.training.loader."
        )
    model = cast("GPTModelProvider", config.model)
    train: Any = config.train
    reads.seq_length = model.seq_length
    reads.micro_batch_size = train.micro_batch_size
    reads.global_batch_size = train.global_batch_size
    reads.seed = launch.spec.seed
    reads.num_workers = launch.spec.loader_workers
    reads.pin_memory = launch.profile != "cpu"
    reads.lock = str(lock_path(run.path))
    namespace = Namespace(run.root)
    lock = reads.locked()
    reads.folders = {
        source.key: str(namespace.version(parse(source.train), source.version).path)
        for source in lock.sources
    }
    tokenizer = load(reads.tokenizer)
    processor = None if lock.image_processor is None else images.load(reads.tokenizer)
    vision_tokens.agree(model, tokenizer, processor)
    _make_room(config, tokenizer.size)


def _make_room(config: ConfigContainer, tokens: int) -> None:
    """A model without a vocabulary of its own gets the tokenizer's."""
    tokenizer: Any = config.tokenizer
    if tokenizer.tokenizer_type == "NullTokenizer":
        tokenizer.vocab_size = tokens
    vocabulary: int | None = cast("GPTModelProvider", config.model).vocab_size
    if vocabulary is not None and vocabulary < tokens:
        raise SpecError(
            f"The tokenizer has {tokens:,} tokens, and the model knows {vocabulary:,}. Set "
            "dataset.tokenizer to the model's own."
        )
