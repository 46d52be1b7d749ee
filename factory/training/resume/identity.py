"""Identity: what must be equal for the data of a run to continue exactly.

Neither Energon nor Bridge compares these: a changed number of loader workers fails without a word,
the state of another rank is taken, and another blend continues as if it were the old one. So they
lie in each checkpoint's marker, and a resume that differs in one of them is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from factory.data.mixing.of_runs import MIX_LOCK
from factory.errors import ResumeRefused
from factory.namespace.checkpoints import Checkpoint

if TYPE_CHECKING:
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import ConfigContainer

    from factory.spec import Launch
    from factory.training.loader import MixProvider

type Identity = dict[str, JsonValue]

DATA_PARALLEL_SIZE = "data-parallel size"
LOADER_WORKERS = "loader workers of each rank"
MICRO_BATCH_SIZE = "micro batch size"
GLOBAL_BATCH_SIZE = "global batch size"


def identity_of(config: ConfigContainer, launch: Launch) -> Identity:
    """What decides which token comes when, in words that a refusal can use."""
    model = cast("GPTModelProvider", config.model)
    ranks = launch.spec.ranks
    parallel = (
        model.tensor_model_parallel_size
        * model.pipeline_model_parallel_size
        * model.context_parallel_size
    )
    lock = cast("MixProvider", config.dataset).locked()
    packing = lock.packing
    return {
        MIX_LOCK: lock.hash,
        **{f"version of {source.key}": source.version for source in lock.sources},
        "tokenizer": lock.tokenizer_identity,
        "way of writing conversations": lock.template_identity,
        "image processor": lock.image_processor,
        "packing": f"{packing.regime}, buffer {packing.buffer}, alignment {packing.alignment}",
        "shuffle": packing.shuffle,
        "context": lock.context,
        "seed": launch.spec.seed,
        MICRO_BATCH_SIZE: config.train.micro_batch_size,
        GLOBAL_BATCH_SIZE: config.train.global_batch_size,
        DATA_PARALLEL_SIZE: ranks // parallel,
        LOADER_WORKERS: launch.spec.loader_workers,
        "Energon": version("megatron-energon"),
    }


def refuse_other_data(
    checkpoint: Checkpoint, now: Mapping[str, JsonValue], *, moved: Collection[str] = ()
) -> None:
    """Return if the data can continue exactly. Fields in `moved` may differ: they are provided for.

    Raises:
        ResumeRefused: something differs; every such field is named, with both values.
    """
    then = checkpoint.marker.identity
    fields = [*then, *(field for field in now if field not in then)]
    changed = [
        f"- {field}: {_shown(then.get(field))} then, {_shown(now.get(field))} now"
        for field in fields
        if then.get(field) != now.get(field) and field not in moved
    ]
    if not changed:
        return
    raise ResumeRefused(
        f"The run cannot go on exactly from its checkpoint of step {checkpoint.step}, because the "
        "data would continue differently:\n" + "\n".join(changed) + "\nGo on with what it had, or "
        "with `--fresh-data`: the weights of that step, and the data from their beginning. For "
        "another number of data-parallel ranks there is `--redistribute`."
    )


def _shown(value: JsonValue) -> str:
    return "nothing" if value is None else str(value)
