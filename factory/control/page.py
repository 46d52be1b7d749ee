"""What a run's page shows of its reports: readable lines, each once, and no more than one can read.

A process that is killed may have shown lines that no cursor says. Whoever follows the run after it
is told what the page has, and shows none of that again.
"""

import logging
import time
from collections import Counter
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from factory.reports import MixtureLine, Phase, SourceCounts, StepLine

STEP_LINE_SECONDS = 1.0
"""Steps shown on the run's page are at least so far apart; every step is in the run's files."""

MIXTURE_LINE_SECONDS = 60.0
"""The same for shares, which change slowly. Drift is shown at once."""

SOURCES_SHOWN = 5

type Report = StepLine | Phase | MixtureLine
_report: TypeAdapter[Report] = TypeAdapter(Report)


class Page:
    """The lines of one attempt on the page of its run."""

    def __init__(self, log: logging.Logger, before: Mapping[str, int]) -> None:
        """`before` are the lines that are there, and how often each."""
        self._log = log
        self._before = Counter(before)
        self._shown_at = {StepLine: float("-inf"), MixtureLine: float("-inf")}

    def has(self, line: str) -> bool:
        """Whether the line is there, from before; each counts once."""
        if self._before[line] <= 0:
            return False
        self._before[line] -= 1
        return True

    def goes_on(self) -> None:
        """All that may be there from before has been passed: an equal line is a new one."""
        self._before.clear()

    def show(self, payload: object, *, again: bool) -> None:
        """Show a report that is new, not `again`; what is none of ours is left to Dagster."""
        try:
            report = _report.validate_python(payload)
        except ValidationError:
            return  # Dagster keeps it with the step's custom messages
        if isinstance(report, MixtureLine):
            for alarm in report.alarms:
                self._say(logging.WARNING, f"The mixture drifts: {alarm}.", again=again)
            for note in report.notes:
                self._say(logging.INFO, note, again=again)
        if again or not self._is_too_soon(report):
            self._say(logging.INFO, readable(report), again=again)

    def _say(self, level: int, line: str, *, again: bool) -> None:
        if not self.has(line) and not again:
            self._log.log(level, line)

    def _is_too_soon(self, report: Report) -> bool:
        """Whether the last one of its kind is on the page since a moment ago only."""
        if isinstance(report, Phase):
            return False
        now, kind = time.monotonic(), type(report)
        apart = STEP_LINE_SECONDS if kind is StepLine else MIXTURE_LINE_SECONDS
        if now - self._shown_at[kind] < apart and report.step < report.of:
            return True
        self._shown_at[kind] = now
        return False


def readable(report: Report) -> str:
    """A report as a line for the run's page."""
    if isinstance(report, MixtureLine):
        return _mixture(report)
    if isinstance(report, Phase):
        detail = f": {report.detail}" if report.detail else ""
        return f"{report.name}{detail} ({report.seconds:.1f} s)"
    parts = [f"step {report.step}/{report.of}", f"loss {report.loss:.4f}"]
    if report.grad_norm is not None:
        parts.append(f"grad norm {report.grad_norm:.3f}")
    if report.learning_rate is not None:
        parts.append(f"learning rate {report.learning_rate:.3g}")
    return ", ".join([*parts, f"{report.tokens:,} tokens", f"{report.seconds:.2f} s"])


def _mixture(line: MixtureLine) -> str:
    """The shares of the largest sources so far, by three ways of counting."""
    columns = ("samples", "tokens", "loss_tokens")
    sums = [max(1, sum(getattr(one, name) for one in line.sources)) for name in columns]

    def shares(source: SourceCounts) -> str:
        numbers = [getattr(source, name) / of for name, of in zip(columns, sums, strict=True)]
        return f"{source.source} " + " / ".join(f"{100 * number:.1f}" for number in numbers)

    largest = sorted(line.sources, key=lambda one: one.tokens, reverse=True)
    shown = ", ".join(shares(source) for source in largest[:SOURCES_SHOWN])
    more = f" and {len(largest) - SOURCES_SHOWN} more" if len(largest) > SOURCES_SHOWN else ""
    padding = (line.ending + line.aligning) / max(1, line.slots)
    return (
        f"mixture at step {line.step}/{line.of}, % of samples / tokens / loss tokens: "
        f"{shown}{more}; {padding:.2%} padding"
    )
