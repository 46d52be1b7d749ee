"""`MixLock`: a mix with everything resolved that decides what a run reads, and what to expect.

`definitions/mixes/NAME.lock` keeps one in the repository, `mix.lock` in a run's directory is what
that run reads (`of_runs`). Its hash is the identity of the mix: equal hashes, seeds and layouts
give equal streams. Expectations lie beside and are no part of it. How a mix becomes one is in
`resolve`.
"""

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from factory.data.mix_words import Chat, MixRole, Overflow, Regime
from factory.data.mixing.shares import Basis
from factory.data.sample import canonical
from factory.errors import SpecError

FORM = 1
"""Of what equal locks make: a change of sampling, cutting or packing is another form."""

_BESIDE: frozenset[str] = frozenset({"hash", "name", "expectations"})
"""Fields that decide nothing of what is read."""


class LockedSource(BaseModel, frozen=True, extra="forbid"):
    """A dataset of the mix; its place in `MixLock.sources` is its number everywhere."""

    key: str = Field(description="Key of the dataset: public/text/plos.")
    version: str = Field(description="Version of `<key>/energon/train`.")
    role: MixRole = Field(description="What it is in the mix for.")
    weight: float = Field(gt=0, allow_inf_nan=False, description="As declared.")
    max_epochs: float | None = Field(gt=0, allow_inf_nan=False, description="Passes at most.")
    max_share: float | None = Field(gt=0, le=1, description="Of the stream, in the mix's basis.")
    overflow: Overflow = Field(description="What becomes of a sample longer than the context.")
    samples: int = Field(ge=1, description="In that version.")
    licenses: tuple[str, ...] = Field(description="Every licence found in that version.")

    @property
    def train(self) -> str:
        """Key of what is read."""
        return f"{self.key}/energon/train"


class LockedStage(BaseModel, frozen=True, extra="forbid"):
    """A part of the run."""

    from_step: int = Field(ge=0, description="The step before which it begins; the first has 0.")
    context: int = Field(ge=1, description="Positions of a sequence.")
    weights: tuple[float, ...] = Field(description="Of every source; 0 is not drawn.")


class LockedPacking(BaseModel, frozen=True, extra="forbid"):
    """How samples become sequences of the context's length."""

    regime: Regime
    buffer: int = Field(ge=1, description="Sequences that are packed together.")
    alignment: int = Field(ge=1, description="Positions that documents begin at a multiple of.")
    shuffle: int = Field(ge=1, description="Samples of a source that are shuffled together.")


class Expected(BaseModel, frozen=True, extra="forbid"):
    """What a run will have seen of a source at its end, as far as a sample of it tells."""

    measured: int = Field(ge=0, description="Samples that were encoded for this.")
    dropped: float = Field(ge=0, le=1, description="Share of them that nothing is trained on of.")
    mean_tokens: float = Field(ge=0, description="Positions trained on, a sample drawn.")
    mean_loss_tokens: float = Field(ge=0, description="Those that carry loss, a sample drawn.")
    samples: float = Field(ge=0, description="Drawn and trained on.")
    tokens: float = Field(ge=0)
    loss_tokens: float = Field(ge=0)
    epochs: float = Field(ge=0, description="Samples drawn over samples there are.")
    sample_share: float = Field(ge=0, le=1)
    token_share: float = Field(ge=0, le=1)
    loss_token_share: float = Field(ge=0, le=1)
    capped_at: int | None = Field(description="The step at which it reaches its cap of epochs.")


class Expectations(BaseModel, frozen=True, extra="forbid"):
    """What a run of so many steps comes to. Estimates, so no part of a lock's identity."""

    recipe: str = Field(description="Whose steps and sequences these are.")
    steps: int = Field(ge=1)
    sequences: int = Field(ge=1, description="Of the context's length in a step, over all ranks.")
    tokens: float = Field(ge=0, description="Over all sources.")
    ends_at: int | None = Field(description="The step at which caps leave nothing to go on with.")
    sources: tuple[Expected, ...]


class MixLock(BaseModel, frozen=True, extra="forbid"):
    """A mix, resolved."""

    form: int = FORM
    name: str = Field(description="Of the file in definitions/mixes.")
    basis: Basis = Field(description="What weights are shares of.")
    sources: tuple[LockedSource, ...] = Field(min_length=1)
    stages: tuple[LockedStage, ...] = Field(min_length=1)
    tokenizer: str = Field(description="As the recipe names it.")
    tokenizer_identity: str = Field(description="Hash of what decides which tokens a text is.")
    chat: Chat = Field(description="How conversations are written.")
    template_identity: str = Field(
        description="Of the encoder: the tokenizer with how conversations are written."
    )
    image_processor: str | None = Field(
        default=None,
        description="Identity of the image processor beside the tokenizer; none where the model "
        "sees no images.",
    )
    packing: LockedPacking
    expectations: Expectations | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        begins = [stage.from_step for stage in self.stages]
        contexts = [stage.context for stage in self.stages]
        if begins[0] or begins != sorted(set(begins)) or contexts != sorted(contexts):
            raise ValueError("Stages begin at step 0, one after the other, and contexts only grow.")
        if any(len(stage.weights) != len(self.sources) for stage in self.stages):
            raise ValueError("A stage has a weight for every source.")
        return self

    @property
    def hash(self) -> str:
        """sha256 of everything that decides what is read.

        Names, roles, licences and estimates decide nothing, nor does where a tokenizer lies; of
        weights, those of the stages do.
        """
        decides = self.model_dump(mode="json", exclude={*_BESIDE, "tokenizer"})
        for source in decides["sources"]:
            for name in ("role", "weight", "licenses"):
                del source[name]
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def pins(self) -> Self:
        """The lock without what to expect."""
        return self.model_copy(update={"expectations": None})

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of every source, by its number."""
        return tuple(source.key for source in self.sources)

    @property
    def context(self) -> int:
        """Positions of the longest sequences: contexts never shrink."""
        return self.stages[-1].context

    def stage(self, step: int) -> int:
        """Which stage the step with that number, from 0, is in."""
        begun = [at for at, one in enumerate(self.stages) if one.from_step <= step]
        return begun[-1]

    def to_json(self) -> bytes:
        """The lock as a file: its hash first, for people; `from_json` compares it."""
        fields = {"hash": self.hash, **self.model_dump(mode="json")}
        return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes, where: str = "mix.lock") -> Self:
        """The lock in a file.

        Args:
            data: what the file holds.
            where: what the file is called in messages.

        Raises:
            SpecError: it is no lock, of another form, or was changed by hand.
        """
        try:
            fields: Any = json.loads(data)
            stated = fields.pop("hash")
            lock = cls.model_validate(fields)
        except ValidationError as error:
            wrong = sorted({".".join(map(str, at["loc"])) for at in error.errors()})
            raise SpecError(
                f"{where} is no lock of a mix (wrong: {', '.join(wrong)}). {_AGAIN}"
            ) from None
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise SpecError(
                f"{where} is no lock of a mix: it is not JSON, or has no hash. {_AGAIN}"
            ) from None
        if lock.form != FORM:
            raise SpecError(
                f"{where} is a lock of form {lock.form}, and this code makes {FORM} of a mix: what "
                f"was read then cannot be read again with it. {_AGAIN}"
            )
        if lock.hash != stated:
            raise SpecError(
                f"{where} says that its hash is {str(stated)[:12]}, but its content has "
                f"{lock.hash[:12]}: it was changed by hand. {_AGAIN}"
            )
        return lock


_AGAIN = "`factory mix lock NAME` writes one; a run keeps the one that it was started with."
