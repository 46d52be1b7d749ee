"""Rules of a mix: what a declaration may say, and words for what it may not.

A declaration is written by hand and run before a type checker sees it, so every value is taken for
anything. Discovery puts the name of the file before each message.
"""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from factory.data.dataset import Dataset
from factory.data.mix_words import MixRole, Overflow
from factory.data.mixing.shares import Basis, shares
from factory.errors import DeclarationError
from factory.keys import PrivateKey, PublicKey

if TYPE_CHECKING:
    from factory.data.mix import Mix, Stage, Weighted

PAIR = 2
"""A weight and a dataset."""

ROLES: tuple[MixRole, ...] = get_args(MixRole.__value__)


def entries(mix: "Mix") -> Iterator[tuple[MixRole, "Weighted"]]:
    """Every dataset of a mix with its role.

    Raises:
        DeclarationError: a role has something other than datasets with weights.
    """
    from factory.data.mix import Weighted

    for role in ROLES:
        given: Any = getattr(mix, role)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise DeclarationError(
                f"{role} is {_shown(given)}; write a list of datasets with weights: "
                f"{role}=[(2.0, plos)]."
            )
        for at, one in enumerate(cast("Sequence[Any]", given)):
            if isinstance(one, Weighted):
                yield role, one
            elif isinstance(one, tuple) and len(pair := cast("tuple[Any, ...]", one)) == PAIR:
                yield role, Weighted(*pair)
            else:
                raise DeclarationError(
                    f"{role}[{at}] is {_shown(one)}; write a weight and a dataset, (2.0, plos), or "
                    "Weighted(2.0, plos, max_epochs=4)."
                )


def check_weighted(one: "Weighted") -> None:
    """What holds of a dataset in any mix.

    Raises:
        DeclarationError: it does not.
    """
    dataset: Any = one.dataset
    if not isinstance(dataset, Dataset):
        raise DeclarationError(
            f"{_shown(dataset)} is in the mix with the weight {_shown(one.weight)}, but is no "
            "dataset. Write the weight first, then the dataset: (2.0, plos)."
        )
    if dataset.role == "benchmark":
        raise DeclarationError(
            f"{dataset.key} is a benchmark: what is trained on it says nothing when it is measured "
            "with it. Take it out of the mix."
        )
    if not _is_number(one.weight) or one.weight <= 0:
        raise DeclarationError(
            f"{dataset.key} has the weight {_shown(one.weight)}; a weight is a finite number above "
            "0. Leave a dataset out instead of weighting it 0."
        )
    if one.max_epochs is not None and (not _is_number(one.max_epochs) or one.max_epochs <= 0):
        raise DeclarationError(
            f"{dataset.key}: max_epochs is {_shown(one.max_epochs)}; write how often its samples "
            "may be read, a number above 0, for instance 4, or leave it out."
        )
    if one.max_share is not None and not (_is_number(one.max_share) and 0 < one.max_share <= 1):
        raise DeclarationError(
            f"{dataset.key}: max_share is {_shown(one.max_share)}; write a share of the stream "
            "above 0 and up to 1, for instance 0.2, or leave it out."
        )
    _check_choice(f"{dataset.key}: overflow", one.overflow, get_args(Overflow.__value__))


def check_stage(stage: "Stage") -> None:
    """What holds of a stage of any mix.

    Raises:
        DeclarationError: it does not.
    """
    if not _is_count(stage.from_step, 0):
        raise DeclarationError(
            f"A stage's from_step is {_shown(stage.from_step)}; write the number of the step that "
            "it begins with, 0 for the first stage."
        )
    where = f"The stage from step {stage.from_step}"
    if stage.context is not None and not _is_count(stage.context, 1):
        raise DeclarationError(
            f"{where}: context is {_shown(stage.context)}; write how many tokens a sequence has, "
            "4096 for instance, or leave it out for the recipe's."
        )
    weights: Any = stage.weights
    if not isinstance(weights, Mapping):
        raise DeclarationError(
            f"{where}: weights is {_shown(weights)}; write {{plos.key: 2.0}}: the weights that "
            "differ, by key of the dataset."
        )
    for key, weight in weights.items():
        if not isinstance(key, str | PublicKey | PrivateKey):
            raise DeclarationError(
                f"{where} has a weight for {_shown(key)}, which is no key. Write plos.key, or "
                "'public/text/plos'."
            )
        if not _is_number(weight) or weight < 0:
            raise DeclarationError(
                f"{where}: the weight of {key} is {_shown(weight)}; write a finite number from 0 "
                "up. 0 pauses the dataset."
            )


def check_mix(mix: "Mix") -> None:
    """What holds of a whole mix.

    Raises:
        DeclarationError: it does not.
    """
    _check_choice("basis", mix.basis, get_args(Basis.__value__))
    found = [one for _, one in entries(mix)]
    if not found:
        raise DeclarationError("A mix without datasets trains nothing. Name at least one.")
    seen: set[str] = set()
    for one in found:
        if one.dataset.key.path in seen:
            raise DeclarationError(
                f"{one.dataset.key} is in the mix twice. Give it one purpose and one weight."
            )
        seen.add(one.dataset.key.path)
    _check_stages(mix)
    for stage in mix.stages:
        _check_shares(mix, stage, found)
    for at, one in enumerate(found):
        if not any(mix.weights(stage)[at] for stage in mix.stages):
            raise DeclarationError(
                f"{one.dataset.key} has the weight 0 in every stage. Leave it out of the mix."
            )


def _check_stages(mix: "Mix") -> None:
    """Stages follow one another, and contexts only grow."""
    from factory.data.mix import Stage

    given: Any = mix.stages
    if not isinstance(given, Sequence) or not given or not all(isinstance(s, Stage) for s in given):
        raise DeclarationError(
            f"stages is {_shown(given)}; write a list of Stage(from_step=..., ...), the first from "
            "step 0, or leave it out."
        )
    begins = [stage.from_step for stage in mix.stages]
    if begins[0] or begins != sorted(set(begins)):
        raise DeclarationError(
            f"The stages begin with the steps {', '.join(map(str, begins))}. The first begins with "
            "step 0, and each later than the one before."
        )
    longest = 0.0
    for stage in mix.stages:
        context = math.inf if stage.context is None else stage.context
        if context < longest:
            before = "the recipe's context" if math.isinf(longest) else f"{longest:,.0f} tokens"
            raise DeclarationError(
                f"The stage from step {stage.from_step} has sequences of {context:,.0f} tokens "
                f"after {before}. Contexts only grow: what waits to be packed must fit. Give the "
                "longer one to the later stage; without a context a stage has the recipe's."
            )
        longest = context


def _check_shares(mix: "Mix", stage: "Stage", found: Sequence["Weighted"]) -> None:
    """A stage names datasets of the mix, and their caps let them fill it."""
    keys = [one.dataset.key.path for one in found]
    for key in stage.changes:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=0.0)
            raise DeclarationError(
                f"The stage from step {stage.from_step} has a weight for {key}, which is not in "
                f"the mix. Did you mean {near[0] if near else keys[0]}? Give it a weight in the "
                "mix first."
            )
    weights = mix.weights(stage)
    if not any(weights):
        raise DeclarationError(
            f"The stage from step {stage.from_step} pauses every dataset. Leave one a weight."
        )
    if shares(weights, [one.max_share for one in found]) is None:
        drawn = [one for one, weight in zip(found, weights, strict=True) if weight]
        caps = ", ".join(f"{one.dataset.key} {one.max_share:g}" for one in drawn if one.max_share)
        raise DeclarationError(
            f"The stage from step {stage.from_step} cannot be filled: its datasets may make up "
            f"less than all of it together ({caps}). Raise a max_share, or add a dataset."
        )


def _check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise DeclarationError(
            f"{name} is {_shown(value)}; write one of {', '.join(known)}.{meant}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _shown(value: Any) -> str:
    """A value as a message names it: a dataset by its key."""
    if isinstance(value, Dataset):
        return f"the dataset {value.key}"
    text = repr(value)
    longest = 80
    return text if len(text) <= longest else f"{text[:longest]}..."
