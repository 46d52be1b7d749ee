"""The steps of a run, whatever its attempts have left."""

from pathlib import Path

import pytest

from factory.diagnose.steps import step_lines
from factory.errors import RunFailed
from factory.reports import StepLine


def line(step: int, loss: float) -> StepLine:
    return StepLine(
        step=step, of=9, loss=loss, grad_norm=1.0, learning_rate=None, tokens=step, seconds=0.1
    )


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    (tmp_path / "monitor").mkdir()
    return tmp_path / "monitor" / "steps.jsonl"


def write(file: Path, *lines: StepLine | str) -> None:
    texts = [one if isinstance(one, str) else one.model_dump_json() + "\n" for one in lines]
    file.write_text("".join(texts))


def test_what_a_later_attempt_trained_again_counts_once(tmp_path: Path, steps: Path) -> None:
    write(steps, line(3, 9.0), line(6, 8.0), line(8, 7.5), line(6, 8.1), line(9, 7.0))
    assert [(one.step, one.loss) for one in step_lines(tmp_path)] == [
        (3, 9.0), (6, 8.1), (8, 7.5), (9, 7.0),
    ]  # fmt: skip


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path, steps: Path) -> None:
    cut = line(6, 8.0).model_dump_json()[:20]
    write(steps, line(3, 9.0), cut + "\n", line(6, 8.0), cut)
    assert [one.step for one in step_lines(tmp_path)] == [3, 6]


def test_something_else_is_named(tmp_path: Path, steps: Path) -> None:
    write(steps, line(3, 9.0), '{"step": 4}\n')
    with pytest.raises(RunFailed, match=r"steps\.jsonl, line 2, is no StepLine: Field required"):
        step_lines(tmp_path)
