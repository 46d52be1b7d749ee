"""The step lines of a run, as it wrote them."""

from pathlib import Path

from factory.namespace.run_files import lines
from factory.reports import StepLine


def step_lines(run: Path) -> list[StepLine]:
    """The lines of `monitor/steps.jsonl` below a run's directory, in order of their steps.

    An attempt that goes on from a checkpoint trains the steps after it again; its lines count.
    Before training began there are none.

    Raises:
        RunFailed: a whole line is not a step.
        NamespaceError: it is no file of the run's.
    """
    by_step = {line.step: line for line in lines(run, "monitor/steps.jsonl", StepLine)}
    return [by_step[step] for step in sorted(by_step)]
