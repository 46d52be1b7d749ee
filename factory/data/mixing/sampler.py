"""`Sampler`: chooses the source of every next sample, so that shares come out as declared.

It knows what it has been told and nothing else: no clock, no random numbers, no other reader. Each
loader worker has one for the part of every source that it reads, so shares hold within each. What
was chosen becomes tokens first and is recorded then, so a share of tokens is exact, too: a source
of long documents is simply drawn less often.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from factory.data.mixing.shares import TOLERANCE, Basis, shares
from factory.errors import RunFailed

type State = dict[str, int | list[int]]

_GOLDEN = 2_654_435_769
"""2**32 over the golden ratio: the multiples of it, modulo 2**32, spread most evenly."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Supply:
    """What a reader has of a source, and how much of it may be taken."""

    key: str
    samples: int
    """In the part of the source that this reader reads."""

    max_epochs: float | None = None
    """Times that the part may be read."""

    max_share: float | None = None
    """Of the stream, in the basis of the mix."""

    @property
    def draws(self) -> float:
        """Samples that may be drawn, in whole ones."""
        if self.max_epochs is None:
            return math.inf
        return math.floor(self.max_epochs * self.samples + TOLERANCE)


class Sampler:
    """Chooses sources by shares of samples, tokens or loss tokens.

    It takes the source that would be furthest behind its share after one more sample. In the basis
    `sample` no source is ever a whole sample ahead of its share; in the others none is by more than
    the longest sample so far. Readers but the first begin up to half a sample off, so theirs come
    within a sample and a half of what was declared, however long the run.

    Shares count from when they last changed: what was drawn under others is not made up for. They
    change with `use`, and when a source has reached its cap of epochs and leaves.
    """

    def __init__(
        self, weights: Sequence[float], *, basis: Basis, supply: Sequence[Supply], reader: int = 0
    ) -> None:
        """A sampler that has drawn nothing.

        Args:
            weights: of each source; one with 0 is not drawn.
            basis: what weights are shares of.
            supply: what there is of each source.
            reader: number of this reader among all of the run. Equal readers would draw a rare
                source all at the same time, so each but the first begins as if it had drawn some
                part of a sample of every source, or owed it.

        Raises:
            RunFailed: no source is left to draw from.
        """
        if len(weights) != len(supply):
            raise ValueError(f"{len(weights)} weights for {len(supply)} sources.")
        self._basis: Basis = basis
        self._supply = tuple(supply)
        count = len(supply)
        self._reader = reader
        self._begun = _begun(reader, count)
        self.drawn = [0] * count
        """Samples drawn of each source, those that were dropped included."""
        self._barren = [0] * count
        """The last draws of a source, while nothing came of them: one good sample may come first in
        an epoch and last in the next, but not later."""
        self._samples = [0] * count
        """This and the next since shares last changed."""
        self._amounts = [0] * count
        self._weights = tuple(map(float, weights))
        self._shares = self._allowed()

    @property
    def shares(self) -> tuple[float, ...]:
        """What each source is to make up of the stream now, in the basis of the mix."""
        return tuple(self._shares)

    def use(self, weights: Sequence[float]) -> None:
        """Go on with these weights: a stage begins. Equal weights leave the shares as they are.

        Raises:
            RunFailed: no source is left to draw from.
        """
        self._barren = [0] * len(self._supply)  # in another context other samples are dropped
        if tuple(weights) == self._weights:
            self._shares = self._allowed()
        else:
            self._weights = tuple(map(float, weights))
            self._begin()

    def choose(self) -> int:
        """The source of the next sample. Changes nothing: asked again, it says the same."""
        total: float = sum(self._amounts)
        mean = total / max(1, sum(self._samples)) if total else 1.0
        after = total + (math.fsum(self._begun) + 1) * mean
        best, furthest = 0, -math.inf
        for source, share in enumerate(self._shares):
            behind = share * after - self._amounts[source] - self._begun[source] * mean
            if share and behind > furthest:
                best, furthest = source, behind
        return best

    def record(self, source: int, *, samples: int, tokens: int, loss_tokens: int) -> None:
        """Say what came of the sample that was drawn, once for each.

        Args:
            source: what `choose` said.
            samples: 1, or 0 where nothing of the sample is trained on.
            tokens: positions of it that are.
            loss_tokens: positions of it that carry loss.

        Raises:
            RunFailed: all samples of the source were dropped, so more would be, too; or no source
                is left to draw from.
        """
        amounts = {"sample": samples, "token": tokens, "loss_token": loss_tokens}
        self.drawn[source] += 1
        self._samples[source] += samples
        self._amounts[source] += amounts[self._basis]
        self._barren[source] = 0 if amounts[self._basis] else self._barren[source] + 1
        supply = self._supply[source]
        if self._barren[source] >= 2 * max(1, supply.samples):
            raise RunFailed(
                f"All {supply.samples:,} samples that this reader has of {supply.key} were "
                "dropped, in every order, so its share cannot be reached. The account of the run "
                "has the reasons; take the dataset out of the mix, or change its `overflow`."
            )
        if self.drawn[source] >= supply.draws:
            self._begin()

    def state(self) -> State:
        """What a checkpoint keeps: whole numbers only."""
        exact = [weight.as_integer_ratio() for weight in self._weights]
        return {
            "drawn": list(self.drawn),
            "barren": list(self._barren),
            "samples": list(self._samples),
            "amounts": list(self._amounts),
            "numerators": [numerator for numerator, _ in exact],
            "denominators": [denominator for _, denominator in exact],
            "reader": self._reader,
        }

    def restore(self, state: Mapping[str, int | list[int]]) -> None:
        """Go on where a sampler of the same sources was when it gave that state.

        Also as the reader that it was: a worker's place among all may be another one now.

        Raises:
            RunFailed: no source is left to draw from.
            ValueError: the state is of a sampler of another number of sources.
        """
        given = {name: list(value) for name, value in state.items() if isinstance(value, list)}
        if {len(numbers) for numbers in given.values()} != {len(self._supply)}:
            raise ValueError(
                f"The state is of {len(given['drawn'])} sources, the mix has {len(self._supply)}."
            )
        reader = state["reader"]
        if isinstance(reader, int):
            self._reader = reader
            self._begun = _begun(reader, len(self._supply))
        pairs = zip(given["numerators"], given["denominators"], strict=True)
        self._weights = tuple(numerator / denominator for numerator, denominator in pairs)
        self.drawn = given["drawn"]
        self._barren = given["barren"]
        self._samples = given["samples"]
        self._amounts = given["amounts"]
        self._shares = self._allowed()

    def _begin(self) -> None:
        """Count anew, with the shares of what may still be drawn."""
        self._shares = self._allowed()
        self._samples = [0] * len(self._shares)
        self._amounts = [0] * len(self._shares)

    def _allowed(self) -> list[float]:
        left = [
            weight if drawn < supply.draws else 0.0
            for weight, drawn, supply in zip(self._weights, self.drawn, self._supply, strict=True)
        ]
        found = shares(left, [supply.max_share for supply in self._supply])
        if found is None:
            raise self._used_up(left)
        return found

    def _used_up(self, left: Sequence[float]) -> RunFailed:
        ended = [
            f"{supply.key} was read {drawn / max(1, supply.samples):.3g} times of at most "
            f"{supply.max_epochs:g}"
            for supply, drawn in zip(self._supply, self.drawn, strict=True)
            if supply.max_epochs is not None and drawn >= supply.draws
        ]
        rest = [
            f"{supply.key} may make up {supply.max_share:.3g} of the stream"
            for supply, weight in zip(self._supply, left, strict=True)
            if weight and supply.max_share is not None
        ]
        return RunFailed(
            f"The caps of the mix leave nothing to go on with: {'; '.join([*ended, *rest])}. "
            "Raise `max_epochs` or `max_share`, add data, or train for fewer steps."
        )


def _begun(reader: int, count: int) -> tuple[float, ...]:
    """The part of a sample of each source that counts as drawn at the start, from -1/2 to 1/2.

    Evenly spread over readers for each source, and over sources for each reader.
    """
    if not reader:
        return (0.0,) * count
    return tuple((reader + at) * _GOLDEN % 2**32 / 2**32 - 0.5 for at in range(count))
