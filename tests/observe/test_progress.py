"""What a run says of its steps, also where an earlier attempt ended within an interval."""

import logging
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from factory.observe.background import Background
from factory.reports import StepLine, read_lines


def told(directory: Path, first: int, last: int, saved: int | None = None) -> list[StepLine]:
    """The lines after an attempt at these steps, which saves a checkpoint after one of them."""
    from factory.training.cpu import stand_ins

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with stand_ins():
        from factory.observe.progress import STEPS, Progress, _Step
    made: Any = Progress(directory, interval=5, steps=10, started=time.time())
    made._first = first - 1
    made._writer = Background("progress", made._write, first=made._begin)
    for number in range(first, last + 1):
        made._writer.put(_Step(number, float(number), 100 * number, None, None, time.monotonic()))
        if number == saved:
            made.before_save(number)
    made.close()
    return read_lines(directory / STEPS, StepLine)


@pytest.mark.parametrize("saved", [5, 7, 9])
def test_tokens_and_loss_go_on_where_a_checkpoint_was_saved(tmp_path: Path, saved: int):
    whole, again = tmp_path / "whole", tmp_path / "again"
    whole.mkdir()
    again.mkdir()
    expected = told(whole, 1, 10)
    assert [line.tokens for line in expected] == [1_500, 5_500]
    told(again, 1, 9, saved)
    found = told(again, saved + 1, 10)
    assert [(one.step, one.tokens) for one in found] == [(5, 1_500), (10, 5_500)]
    assert found[-1].loss == pytest.approx(expected[-1].loss)
