"""`Mixture`: the ledger of a run inside of Megatron-Bridge, one on each rank.

Batches come to it as the rank consumes them. At the end of a logging interval the data-parallel
ranks add up, and the last rank, which has the loss as well, hands the line to its writer. What it
knows travels with every checkpoint.
"""

from collections.abc import Callable, Mapping
from typing import Any

from megatron.bridge.training.callbacks import Callback, CallbackContext

from factory.data.stream.account import BatchAccount
from factory.observe.mixture.ledger import Ledger
from factory.observe.mixture.plan import Plan
from factory.observe.mixture.reduction import Reduction
from factory.observe.mixture.watch import Watch
from factory.observe.mixture.writer import Writer


class Mixture(Callback):
    """Counts what a rank is given, and says what came of the mix."""

    def __init__(
        self,
        plan: Plan,
        *,
        interval: int,
        steps: int,
        begun: int,
        writer: Callable[[int], Writer],
    ) -> None:
        """A ledger that has seen nothing.

        Args:
            plan: what is declared.
            interval: steps between two lines.
            steps: that this run will do.
            begun: the attempt in which counting begins, unless it goes on from a checkpoint.
            writer: makes the writer of an attempt that begins after so many steps; called on the
                last rank.
        """
        self._plan = plan
        self._interval = interval
        self._steps = steps
        self._begun = begun
        self._make_writer = writer
        self._writer: Writer | None = None
        self._ledger = Ledger(plan.sizes)
        self._watch: Watch | None = None
        self._reduce: Reduction | None = None
        self._restored: Mapping[str, Any] | None = None

    def on_batch(self, account: BatchAccount) -> None:
        """Count a batch that this rank is about to train on."""
        self._ledger.on_batch(account)

    def on_train_start(self, context: CallbackContext) -> None:
        """The process groups are there: begin, or go on after a checkpoint."""
        from megatron.bridge.utils.common_utils import is_last_rank
        from megatron.core import parallel_state

        step: int = context.state.train_state.step
        self._watch = Watch(self._plan, steps=self._steps, since=step, begun=self._begun)
        if self._restored is not None:
            self._watch.restore(self._restored)
        group: Any = parallel_state.get_data_parallel_group()
        self._reduce = Reduction(group)
        if is_last_rank():
            self._writer = self._make_writer(step)

    def on_train_step_end(self, context: CallbackContext) -> None:
        """Add up where an interval ends. Bridge counts the step only after this call."""
        step: int = context.state.train_state.step + 1
        if self._watch is None or self._reduce is None or not self._watch.due(step, self._interval):
            return
        line = self._watch.line(step, self._reduce(self._ledger.totals))
        if self._writer is not None:
            self._writer.put(line)

    def on_train_end(self, context: CallbackContext) -> None:
        """Wait until everything queued is on disk."""
        self.close()

    def close(self) -> None:
        """Write what is queued and stop, also where training ended early."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON."""
        if self._watch is None:
            raise RuntimeError("A checkpoint was saved before training began; a defect.")
        return {"ledger": self._ledger.state(), "watch": self._watch.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint, before or after training has been announced."""
        watched: Mapping[str, Any] = state["watch"]
        self._ledger.restore(state["ledger"])
        self._restored = watched
        if self._watch is not None:
            self._watch.restore(watched)


def redistributed_states(states: list[Mapping[str, Any]], ranks: int) -> list[dict[str, Any]]:
    """The states of all data-parallel ranks, for another number of them."""
    from factory.observe.mixture.ledger import redistributed

    ledgers = redistributed([state["ledger"] for state in states], ranks)
    return [{"ledger": ledger, "watch": states[0]["watch"]} for ledger in ledgers]
