"""`Mix`: which datasets a run is trained on, in which shares, and why each one is there.

Building one does nothing but check itself: `mix_rules` has the rules. `factory.data.mixing` makes a
lock of it, which says all that decides what a run reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from factory.data import mix_rules
from factory.data.dataset import Dataset
from factory.data.mix_words import MixRole, Overflow
from factory.data.mixing.shares import Basis
from factory.keys import Key
from factory.spec import RunSpec


@dataclass(frozen=True, slots=True)
class Weighted:
    """A dataset of a mix: `(2.0, plos)` is short for `Weighted(2.0, plos)`."""

    weight: float
    """Compared with those of all other datasets of the mix, whatever their role."""

    dataset: Dataset
    max_epochs: float | None = field(default=None, kw_only=True)
    """Times that its samples may be read. Then it leaves, and the others take its share."""

    max_share: float | None = field(default=None, kw_only=True)
    """Of the stream, in the basis of the mix, also when others have left."""

    overflow: Overflow = field(default="split", kw_only=True)
    """What becomes of a sample that is longer than the context."""

    def __post_init__(self) -> None:
        mix_rules.check_weighted(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A part of the run: from a step on, other weights or longer sequences."""

    from_step: int
    """The stage begins before this step; the first one before step 0."""

    context: int | None = None
    """Positions of a sequence; the recipe's `model.seq_length` if left out. Never shrinks."""

    weights: Mapping[Key | str, float] = field(default_factory=dict[Key | str, float])
    """By key of a dataset, `plos.key`. One left out keeps its weight in the mix; 0 pauses it."""

    def __post_init__(self) -> None:
        mix_rules.check_stage(self)

    @property
    def changes(self) -> dict[str, float]:
        """The weights by path of the key."""
        return {str(key): float(weight) for key, weight in self.weights.items()}


type Entries = Sequence[Weighted | tuple[float, Dataset]]


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Datasets and weights by purpose."""

    warmup: Entries = ()
    """What eases the model into the new data."""

    domain_shift: Entries = ()
    """What the model is meant to learn."""

    retention: Entries = ()
    """What keeps the model from forgetting."""

    basis: Basis = "sample"
    """What weights are shares of: samples, tokens, or tokens that carry loss."""

    stages: Sequence[Stage] = (Stage(from_step=0),)

    def __post_init__(self) -> None:
        mix_rules.check_mix(self)

    @property
    def entries(self) -> tuple[tuple[MixRole, Weighted], ...]:
        """Every dataset with its role, in the order of the declaration."""
        return tuple(mix_rules.entries(self))

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset, in the order of the declaration."""
        return tuple(one.dataset for _, one in self.entries)

    def weights(self, stage: Stage) -> tuple[float, ...]:
        """The weight of every dataset in a stage, in the order of the declaration."""
        changes = stage.changes
        return tuple(
            changes.get(one.dataset.key.path, float(one.weight)) for _, one in self.entries
        )


def required_samples(spec: RunSpec, split: str = "train") -> int:
    """Samples that a source needs so that every reader of it has one.

    Energon cuts a source into as many ranges as there are readers: of a smaller one some would have
    nothing, and its share would be smaller than declared. A run reads only `train` so far; of
    another split one sample shows that it is there.
    """
    return spec.ranks * max(1, spec.loader_workers) if split == "train" else 1
