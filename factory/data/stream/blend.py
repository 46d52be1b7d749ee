"""`Blend`: samples from all sources of a mix, encoded, in the shares that the mix declares.

The next source is chosen after the last sample has become tokens, so shares of tokens are exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from megatron.energon import WorkerConfig
from megatron.energon.state import FlexState
from megatron.energon.wrappers.base import BaseWrapperDataset

from factory.data.mixing import MixLock, Sampler, Supply
from factory.data.stream.drawing import Drawing
from factory.data.stream.drawn import Drawn
from factory.data.stream.source import Source
from factory.errors import RunFailed


class Blend(BaseWrapperDataset[Any, Drawn]):
    """Samples of one loader worker. `enter` a stage before anything is drawn.

    A stage may end before its steps do, where the caps of the mix leave nothing to draw. The next
    one may have something again, and the iterator goes on with it.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        lock: MixLock,
        drawing: Drawing,
        *,
        worker_config: WorkerConfig,
    ) -> None:
        super().__init__(sources, worker_config=worker_config)
        self.lock = lock
        self.drawing = drawing
        self.reset_state_own()

    def reset_state_own(self) -> None:
        """Begin anew."""
        self.context = 0
        self._made: Sampler | None = None
        self._stage: int | None = None
        self.ended: RunFailed | None = None
        """Why nothing more can be drawn in this stage."""

    @property
    def sampler(self) -> Sampler:
        """Made late: only a worker knows which part of the sources is its own."""
        if self._made is None:
            supply = [
                Supply(
                    key=source.key,
                    samples=dataset.len_worker(),
                    max_epochs=source.max_epochs,
                    max_share=source.max_share,
                )
                for source, dataset in zip(self.lock.sources, self.datasets, strict=True)
            ]
            workers = max(1, self.worker_config.num_workers)
            reader = self.worker_config.rank * workers + self.worker_config.rank_worker_id()
            self._made = Sampler(
                self.lock.stages[0].weights, basis=self.lock.basis, supply=supply, reader=reader
            )
        return self._made

    def enter(self, stage: int) -> None:
        """Draw for this stage from now on, as far as it leaves anything to draw."""
        if stage == self._stage:
            return
        self._stage, self.ended = stage, None
        self.context = self.lock.stages[stage].context
        try:
            self.sampler.use(self.lock.stages[stage].weights)
        except RunFailed as ended:
            self.ended = ended

    def len_worker(self, worker_idx: int | None = None) -> int:
        """Samples of all sources."""
        return sum(dataset.len_worker(worker_idx) for dataset in self.datasets)

    def __iter__(self) -> Iterator[Drawn]:
        """Endlessly. Nothing may be asked of it while the stage has `ended`."""
        reading = [iter(dataset) for dataset in self.datasets]
        while True:
            source = self.sampler.choose()
            made = self._drawn(source, self.context, next(reading[source]))
            try:
                self.sampler.record(
                    source,
                    samples=int(bool(made.sequences)),
                    tokens=made.tokens,
                    loss_tokens=made.loss_tokens,
                )
            except RunFailed as ended:
                self.ended = ended  # this sample was the last one
            yield made

    def restore_sample(self, restore_key: tuple[Any, ...]) -> Drawn:
        """A sample that was drawn before, as it was drawn."""
        _, source, context, *inner = restore_key
        raw = cast("dict[str, Any]", self.datasets[source].restore_sample(tuple(inner)))
        return self._drawn(source, context, raw)

    def _drawn(self, source: int, context: int, raw: Mapping[str, Any]) -> Drawn:
        key = raw["__restore_key__"]
        made = self.drawing.draw(source, key[-1], context, raw)
        made.__restore_key__ = (type(self).__name__, source, context, *key)
        return made

    def save_state(self) -> FlexState:
        """Of the sampler, beside those of the sources."""
        state = super().save_state()
        state["sampler"] = self.sampler.state()
        state["stage"] = self._stage
        state["ended"] = None if self.ended is None else str(self.ended)
        return state

    def restore_state(self, state: FlexState) -> None:
        """Go on from there."""
        super().restore_state(state)
        saved = cast("dict[str, int | list[int]]", state["sampler"])
        with suppress(RunFailed):  # the stage has ended then, as the state says
            self.sampler.restore(saved)
        self._stage = cast("int | None", state["stage"])
        if self._stage is not None:
            self.context = self.lock.stages[self._stage].context
        said = cast("str | None", state["ended"])
        self.ended = None if said is None else RunFailed(said)

    def config(self) -> dict[str, Any]:
        """What decides the samples."""
        return {
            "type": type(self).__qualname__,
            "lock": self.lock.hash,
            "sources": [dataset.config() for dataset in self.datasets],
        }
