"""`Plan`: what a mix declares, as far as what a run has seen is held against it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from factory.data.mixing.lock import MixLock
from factory.data.mixing.shares import Basis, shares
from factory.data.stream.account import DOCUMENTS
from factory.observe.mixture.totals import Totals, share

MAX_EPOCHS = 4.0
"""Where the projection of a source without a cap ends: up to about 4 epochs, repeated text is
worth nearly as much as new text (Muennighoff et al., Scaling Data-Constrained Language Models,
2023, arXiv 2305.16264)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A dataset of the mix."""

    key: str
    role: str
    size: int
    """Samples."""

    max_epochs: float | None = None
    max_share: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """Weights from a step on."""

    after: int
    """Steps before it."""

    weights: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The declared shares, and what decides how closely they can be met."""

    sources: tuple[Source, ...]
    basis: Basis
    stages: tuple[Stage, ...]
    """At least one; the first begins at step 0."""

    readers: int = 1
    """Loader workers of all ranks. Each reads a part of every source and keeps to its own cap."""

    buffer: int = 0
    """Documents that a reader may hold back: chosen already, not yet trained on."""

    @classmethod
    def of(cls, lock: MixLock, readers: int) -> Self:
        """The plan of a locked mix that so many loader workers read."""
        return cls(
            sources=tuple(
                Source(
                    key=source.key,
                    role=source.role,
                    size=source.samples,
                    max_epochs=source.max_epochs,
                    max_share=source.max_share,
                )
                for source in lock.sources
            ),
            basis=lock.basis,
            stages=tuple(
                Stage(after=stage.from_step, weights=tuple(stage.weights)) for stage in lock.stages
            ),
            readers=readers,
            buffer=lock.packing.buffer,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Samples of each source."""
        return tuple(source.size for source in self.sources)

    def stage(self, step: int) -> int:
        """The stage that a step belongs to; steps are counted from 1."""
        return max(at for at, stage in enumerate(self.stages) if stage.after < max(1, step))

    def ends(self, step: int) -> bool:
        """Whether a stage ends with this step."""
        return self.stage(step) != self.stage(step + 1)

    @property
    def waiting(self) -> int:
        """Documents that all readers together may hold back."""
        return self.readers * self.buffer

    def declared(self, step: int, spent: Collection[int] = ()) -> list[float]:
        """The share of each source at a step, in the basis of the mix.

        Args:
            step: counted from 1.
            spent: sources that have reached their cap, whose share the others take.
        """
        weights = self.stages[self.stage(step)].weights
        left = [0.0 if at in spent else weight for at, weight in enumerate(weights)]
        found = shares(left, [source.max_share for source in self.sources])
        return found or [0.0] * len(weights)

    def spent(self, totals: Totals) -> frozenset[int]:
        """Sources that readers have drawn as often as they may, or as good as.

        What was drawn last is still to come then, so a source counts as spent when no more of it is
        left than readers hold back, and than each of them loses by rounding.
        """
        documents = totals.counts[:, DOCUMENTS]
        waiting = self.waiting * share(documents.astype(float))
        return frozenset(
            at
            for at, source in enumerate(self.sources)
            if source.max_epochs is not None
            and totals.used(at) + self.readers + waiting[at] >= source.max_epochs * source.size
            and totals.used(at) > 0
        )
