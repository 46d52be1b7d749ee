"""The demo's own verdict: a fall is a fall only beyond noise."""

import math
import random

import pytest

from factory.diagnose.loss import MINIMUM_LINES, loss_trend
from factory.errors import RunFailed


def test_a_clear_fall_is_one() -> None:
    trend = loss_trend([5.0 - step / 20 for step in range(60)])
    assert trend.fell
    assert trend.first > trend.last


@pytest.mark.parametrize("seed", range(50))
def test_noise_alone_is_none(seed: int) -> None:
    source = random.Random(seed)
    assert not loss_trend([4.0 + source.gauss(0, 0.2) for _ in range(60)]).fell


def test_a_steep_start_is_not_taken_for_noise() -> None:
    losses = [5.6, 5.3, 3.5, 3.46, 3.18, 2.84, 2.98, 2.78, 2.64, 2.67, 2.81, 2.7, 2.69, 2.76, 2.55]
    trend = loss_trend([*losses, 2.6, 2.6, 2.56, 2.48, 2.62])
    assert trend.fell
    assert trend.margin < 1


def test_a_rise_is_none() -> None:
    assert not loss_trend([4.0 + step / 20 for step in range(60)]).fell


def test_a_constant_loss_did_not_fall() -> None:
    assert not loss_trend([4.0] * 60).fell


def test_too_few_lines_are_refused() -> None:
    with pytest.raises(RunFailed, match=f"it takes {MINIMUM_LINES}"):
        loss_trend([3.0] * (MINIMUM_LINES - 1))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_diverged_run_is_named(bad: float) -> None:
    with pytest.raises(RunFailed, match="line 12 is"):
        loss_trend([3.0] * 11 + [bad] + [2.0] * 20)
