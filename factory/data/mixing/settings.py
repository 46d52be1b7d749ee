"""`DataSettings`: what a recipe and a run spec say of the data, from the values of their fields.

The fields are those of the recipe's configuration (`factory/training/recipes/fields.json`), so a
mix is locked without the trainer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, get_args

from factory.data.encoding.encoder import Chat
from factory.data.packing import Regime, alignment
from factory.errors import SpecError

MULTIPLE_OF_FP8 = 16
"""What Transformer Engine's kernels ask of a document's length in 8 bits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSettings:
    """How a recipe reads, and how much of it."""

    recipe: str
    tokenizer: str
    chat: Chat
    regime: Regime
    buffer: int
    """Sequences that are packed together."""

    shuffle: int
    """Samples of a source that are shuffled together."""

    context: int
    """Positions of a sequence, where a stage says nothing."""

    alignment: int
    steps: int
    sequences: int
    """Of one step, over all ranks."""

    @classmethod
    def of(cls, recipe: str, values: Mapping[str, Any]) -> Self:
        """The settings of a recipe.

        Args:
            recipe: its name.
            values: of its fields, by path, with what a run overrides.

        Raises:
            SpecError: the recipe has no such fields, so it does not read a mix.
        """

        def value(path: str) -> Any:
            if path not in values:
                raise SpecError(
                    f"The recipe {recipe} has no field {path}, so it does not say how it reads a "
                    "mix: its `dataset` must be a MixProvider. If it is, renew the list of "
                    "fields: `python -m factory.training.recipes.fields`."
                )
            return values[path]

        return cls(
            recipe=recipe,
            tokenizer=value("dataset.tokenizer"),
            chat=_choice("dataset.chat", value("dataset.chat"), get_args(Chat.__value__)),
            regime=_choice("dataset.regime", value("dataset.regime"), get_args(Regime.__value__)),
            buffer=_count("dataset.buffer", value("dataset.buffer")),
            shuffle=_count("dataset.shuffle", value("dataset.shuffle")),
            context=_count("model.seq_length", value("model.seq_length")),
            alignment=_alignment(values),
            steps=_count("train.train_iters", value("train.train_iters")),
            sequences=_count("train.global_batch_size", value("train.global_batch_size")),
        )


def _alignment(values: Mapping[str, Any]) -> int:
    return alignment(
        context_parallel=values.get("model.context_parallel_size") or 1,
        tensor_parallel=values.get("model.tensor_model_parallel_size") or 1,
        sequence_parallel=bool(values.get("model.sequence_parallel")),
        multiple=MULTIPLE_OF_FP8 if values.get("model.fp8") else 1,
    )


def _choice(path: str, value: Any, known: tuple[str, ...]) -> Any:
    if value not in known:
        raise SpecError(f"{path} is {value!r}; it takes one of {', '.join(known)}.")
    return value


def _count(path: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise SpecError(f"{path} is {value!r}; a run needs a whole number above 0.")
    return value
