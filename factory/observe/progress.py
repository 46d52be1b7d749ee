"""Progress: one `StepLine` per logging interval, written beside the training thread.

The driver relays the lines to Dagster. Nothing here waits for a disk or a device on the thread that
trains: it hands tensors to a queue, and a writer thread reads their values.
"""

import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from megatron.bridge.training.callbacks import Callback, CallbackContext
from megatron.core.num_microbatches_calculator import get_num_microbatches

from factory.reports import StepLine

LOSS, TOKENS = "lm loss", "loss tokens"


@dataclass(frozen=True)
class _Step:
    number: int
    loss: Any
    tokens: Any
    grad_norm: Any
    learning_rate: float | None
    ended: float


class Progress(Callback):
    """Writes `monitor/steps.jsonl`. On every rank but one it does nothing."""

    def __init__(self, path: Path, *, interval: int, steps: int, tokens_before: int = 0) -> None:
        self.path = path
        self.interval = interval
        self.steps = steps
        self.tokens = tokens_before
        self._queue: queue.SimpleQueue[_Step | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._since = time.monotonic()

    def on_train_start(self, context: CallbackContext) -> None:
        """Start the writer on the rank that has the loss."""
        from megatron.bridge.utils.common_utils import is_last_rank

        self._since = time.monotonic()
        if is_last_rank():
            self._writer = threading.Thread(target=self._write, name="progress", daemon=True)
            self._writer.start()

    def on_train_step_end(self, context: CallbackContext) -> None:
        """Queue the step. Bridge counts it only after this call."""
        report = context.loss_dict
        if self._writer is None or not report:
            return
        if self._failure is not None:
            raise self._failure
        data = context.state.cfg.data_parallel_size * get_num_microbatches()
        groups: list[dict[str, Any]] = context.optimizer.param_groups if context.optimizer else []
        self._queue.put(
            _Step(
                number=context.state.train_state.step + 1,
                loss=report[LOSS].detach().clone(),
                tokens=report[TOKENS].detach() * data,
                grad_norm=context.grad_norm,
                learning_rate=groups[0]["lr"] if groups else None,
                ended=time.monotonic(),
            )
        )

    def on_train_end(self, context: CallbackContext) -> None:
        """Wait until everything queued is on disk."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                pending: list[_Step] = []
                while (step := self._queue.get()) is not None:
                    pending.append(step)
                    if step.number % self.interval == 0 or step.number == self.steps:
                        file.write(self._line(pending).model_dump_json() + "\n")
                        file.flush()
                        pending = []
        except BaseException as failure:  # noqa: BLE001, raised again on the training thread
            self._failure = failure

    def _line(self, steps: list[_Step]) -> StepLine:
        tokens = [round(float(step.tokens)) for step in steps]
        self.tokens += sum(tokens)
        last = steps[-1]
        started, self._since = self._since, last.ended
        weighted = sum(float(s.loss) * n for s, n in zip(steps, tokens, strict=True))
        return StepLine(
            step=last.number,
            of=self.steps,
            loss=weighted / max(1, sum(tokens)),
            grad_norm=None if last.grad_norm is None else float(last.grad_norm),
            learning_rate=last.learning_rate,
            tokens=self.tokens,
            seconds=last.ended - started,
        )
