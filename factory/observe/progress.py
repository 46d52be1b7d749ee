"""Progress: one `StepLine` per logging interval, written beside the training thread.

The driver relays the lines to Dagster. Nothing here waits for a disk or a device on the thread that
trains: it hands tensors to a queue, and a writer thread reads their values. The few points
that a person waits for are written as `Phase` lines.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from megatron.bridge.training.callbacks import Callback, CallbackContext
from megatron.core.num_microbatches_calculator import get_num_microbatches
from pydantic import BaseModel

from factory.observe.background import Background
from factory.reports import Phase, StepLine, read_lines

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

LOSS, TOKENS = "lm loss", "loss tokens"
"""Keys of Bridge's loss report; the second comes from `factory.training.forward`."""

STEPS, PHASES = "steps.jsonl", "phases.jsonl"

SAVED = "saved.jsonl"
"""File of the sums at each checkpoint, which a later attempt goes on from."""


class _Sums(BaseModel, frozen=True, extra="forbid"):
    """What was summed up to a step at which a checkpoint was saved."""

    step: int
    tokens: int
    """Up to the last interval that ended."""

    pending_tokens: int = 0
    """Since then."""

    pending_loss: float = 0.0
    """Losses since then, each times its tokens."""


@dataclass(frozen=True)
class _Step:
    number: int
    loss: Any
    tokens: Any
    grad_norm: Any
    learning_rate: float | None
    ended: float


@dataclass(frozen=True)
class _Saving:
    step: int


class Progress(Callback):
    """Writes `steps.jsonl`, `phases.jsonl` and `saved.jsonl`, on the one rank that has the loss."""

    def __init__(self, directory: Path, *, interval: int, steps: int, started: float) -> None:
        self.directory = directory
        self.interval = interval
        self.steps = steps
        self.started = started
        self._sums = _Sums(step=0, tokens=0)
        """At the end of the last interval; what is pending there, an earlier attempt has left."""

        self._writer: Background[_Step | _Saving | Phase] | None = None
        self._files: dict[type[BaseModel], TextIO] = {}
        self._open = ExitStack()
        self._pending: list[_Step] = []
        self._first = 0
        self._since = time.monotonic()

    def on_train_start(self, context: CallbackContext) -> None:
        """The model is built and the data is open: start the writer."""
        from megatron.bridge.utils.common_utils import is_last_rank

        self._since = time.monotonic()
        self._first = context.state.train_state.step
        if is_last_rank():
            self._writer = Background("progress", self._write, first=self._begin)
        self._say("train", f"from step {context.state.train_state.step}")

    def on_train_step_end(self, context: CallbackContext) -> None:
        """Queue the step. Bridge counts it only after this call."""
        report = context.loss_dict
        if self._writer is None or not report:
            return
        config = cast("ConfigContainer", context.state.cfg)
        micro_batches = config.data_parallel_size * get_num_microbatches()
        groups: list[dict[str, Any]] = context.optimizer.param_groups if context.optimizer else []
        self._writer.put(
            _Step(
                number=context.state.train_state.step + 1,
                loss=report[LOSS].detach().clone(),
                tokens=report[TOKENS].detach() * micro_batches,
                grad_norm=context.grad_norm,
                learning_rate=groups[0]["lr"] if groups else None,
                ended=time.monotonic(),
            )
        )

    def before_save(self, step: int) -> None:
        """A checkpoint of this step begins to be saved: keep what was summed up to it."""
        if self._writer is not None:
            self._writer.put(_Saving(step))

    def on_checkpoint_save(self, context: CallbackContext) -> None:
        """Bridge calls this after a save."""
        self._say("checkpoint", f"step {context.state.train_state.step}")

    def on_train_end(self, context: CallbackContext) -> None:
        """Wait until everything queued is on disk."""
        self.close()

    def close(self) -> None:
        """Write what is queued and stop, also where training ended early."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with self._open:
                writer.close()

    def _say(self, name: str, detail: str) -> None:
        if self._writer is not None:
            seconds = max(0.0, time.time() - self.started)
            self._writer.put(Phase(name=name, detail=detail, seconds=seconds))

    def _begin(self) -> None:
        self._sums = self._sums_before()
        for kind, name in ((StepLine, STEPS), (Phase, PHASES), (_Sums, SAVED)):
            self._files[kind] = self._open.enter_context(_for_lines(self.directory / name))

    def _write(self, item: _Step | _Saving | Phase) -> None:
        line = self._line(item)
        if line is not None:
            file = self._files[type(line)]
            file.write(line.model_dump_json() + "\n")
            file.flush()

    def _line(self, item: _Step | _Saving | Phase) -> StepLine | _Sums | Phase | None:
        if isinstance(item, Phase):
            return item
        return self._summed(item.step) if isinstance(item, _Saving) else self._interval_line(item)

    def _sums_before(self) -> _Sums:
        """Up to the step that an earlier attempt's checkpoint continues from."""
        if not self._first:
            return self._sums
        for sums in reversed(read_lines(self.directory / SAVED, _Sums)):
            if sums.step == self._first:
                return sums
        # It was saved after the last interval, or the machine failed before the line was on disk.
        lines = read_lines(self.directory / STEPS, StepLine)
        known = max((line.tokens for line in lines if line.step <= self._first), default=0)
        return _Sums(step=self._first, tokens=known)

    def _summed(self, step: int) -> _Sums:
        """What is known up to a step, that of the interval which has not ended included."""
        tokens = [round(float(one.tokens)) for one in self._pending]
        weighted = sum(float(one.loss) * n for one, n in zip(self._pending, tokens, strict=True))
        return _Sums(
            step=step,
            tokens=self._sums.tokens,
            pending_tokens=self._sums.pending_tokens + sum(tokens),
            pending_loss=self._sums.pending_loss + weighted,
        )

    def _interval_line(self, step: _Step) -> StepLine | None:
        """The interval that ends with this step, if one does."""
        self._pending.append(step)
        if step.number % self.interval and step.number != self.steps:
            return None
        found = self._summed(step.number)
        self._pending = []
        self._sums = _Sums(step=step.number, tokens=found.tokens + found.pending_tokens)
        started, self._since = self._since, step.ended
        return StepLine(
            step=step.number,
            of=self.steps,
            loss=found.pending_loss / max(1, found.pending_tokens),
            grad_norm=None if step.grad_norm is None else float(step.grad_norm),
            learning_rate=step.learning_rate,
            tokens=self._sums.tokens,
            seconds=step.ended - started,
        )


def _for_lines(path: Path) -> TextIO:
    """Open for appending; a line that a crash cut off is closed, so that the next stays whole."""
    cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    file = path.open("a", encoding="utf-8")
    if cut:
        file.write("\n")
    return file
