"""The step lines of a run, as it wrote them."""

from pathlib import Path

from pydantic import ValidationError

from factory.errors import RunFailed
from factory.reports import StepLine


def step_lines(run: Path) -> list[StepLine]:
    """The lines of `monitor/steps.jsonl` below a run's directory, oldest first.

    One that was cut off by a crash is left out; before training began there are none.

    Raises:
        RunFailed: a whole line is not a step.
    """
    file = run / "monitor" / "steps.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    lines: list[StepLine] = []
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            continue
        try:
            lines.append(StepLine.model_validate_json(line))
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            raise RunFailed(f"{file}, line {number}, is not a step: {what}.") from error
    return lines
