"""Chain: the hash over everything that a rank has read, written down at every step.

`chain/rank-0000.jsonl` in the run's directory has a line for each step of each attempt. Two runs of
equal lines have read the same batches in the same order, byte for byte, and what a later attempt
repeats after a kill must be what was there before. `chains` reads them.
"""

import json
from collections.abc import Mapping
from typing import Any

from megatron.bridge.training.callbacks import Callback, CallbackContext

from factory.data.stream.account import BatchAccount, Chain
from factory.namespace.attempts import Attempt
from factory.observe.background import Background
from factory.training.resume.chains import CHAINS


class ChainLog(Callback):
    """The chain of one data-parallel rank; of ranks that read the same, one writes."""

    def __init__(self, attempt: Attempt, begun: int) -> None:
        """A chain of nothing, which begins in that attempt unless it goes on from a checkpoint."""
        self._attempt = attempt
        self._chain = Chain()
        self._begun = begun
        self._name = ""
        self._writer: Background[tuple[int, int, str]] | None = None

    def on_batch(self, account: BatchAccount) -> None:
        """Append a batch that this rank is about to train on."""
        self._chain.add(account.digest)

    def state(self) -> Mapping[str, Any]:
        """What a checkpoint keeps of it."""
        return {**self._chain.state(), "begun": self._begun}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._chain = Chain.restored(state)
        self._begun = int(state["begun"])

    def on_train_start(self, context: CallbackContext) -> None:
        """The process groups are there."""
        from factory.training.resume.publisher import place

        here = place()
        if here.leads:
            self._name = f"{CHAINS}/rank-{here.data_rank:04d}.jsonl"
            self._writer = Background("chain", self._write)

    def on_train_step_end(self, context: CallbackContext) -> None:
        """Queue the line of the step. Bridge counts the step only after this call."""
        if self._writer is not None:
            step = context.state.train_state.step + 1
            self._writer.put((step, self._chain.batches, self._chain.value.hex()))

    def on_train_end(self, context: CallbackContext) -> None:
        """Wait until everything queued is on disk."""
        self.close()

    def close(self) -> None:
        """Write what is queued and stop, also where training ended early."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _write(self, entry: tuple[int, int, str]) -> None:
        step, batches, value = entry
        line = {
            "step": step,
            "attempt": self._attempt.number,
            "begun": self._begun,
            "batches": batches,
            "chain": value,
        }
        self._attempt.run.append(self._name, json.dumps(line))
