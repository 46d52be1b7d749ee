"""Weights become shares; what a cap leaves over goes to the others."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.mixing.shares import shares

WEIGHTS = st.floats(0.01, 100)
MOST = st.none() | st.floats(0.01, 1)


@pytest.mark.parametrize(
    ("weights", "most", "expected"),
    [
        ([3.0, 1.0], [None, None], [0.75, 0.25]),
        ([3.0, 0.0, 1.0], [None, None, None], [0.75, 0.0, 0.25]),
        ([8.0, 1.0, 1.0], [0.5, None, None], [0.5, 0.25, 0.25]),
        ([8.0, 1.0, 1.0], [0.5, 0.2, None], [0.5, 0.2, 0.3]),
        ([6.0, 3.0, 1.0], [0.4, 0.45, None], [0.4, 0.45, 0.15]),
        ([1.0, 1.0], [0.5, 0.5], [0.5, 0.5]),
        ([5.0], [1.0], [1.0]),
    ],
)
def test_shares_are_in_proportion_and_at_most_their_caps(weights, most, expected):
    assert shares(weights, most) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "most"),
    [([], []), ([0.0, 0.0], [None, None]), ([1.0, 2.0], [0.4, 0.5]), ([1.0, 0.0], [0.9, None])],
)
def test_what_cannot_fill_the_stream_has_no_shares(weights, most):
    assert shares(weights, most) is None


@given(st.lists(st.tuples(WEIGHTS, MOST), min_size=1, max_size=8))
def test_shares_add_up_and_keep_to_caps_and_order(sources):
    weights = [weight for weight, _ in sources]
    most = [cap for _, cap in sources]
    found = shares(weights, most)
    if found is None:
        assert sum(1.0 if cap is None else cap for cap in most) < 1
        return
    assert math.fsum(found) == pytest.approx(1)
    for share, cap in zip(found, most, strict=True):
        assert share > 0
        assert cap is None or share <= cap + 1e-12
    free = [
        share / weight for share, (weight, cap) in zip(found, sources, strict=True) if cap is None
    ]
    assert max(free, default=1) == pytest.approx(min(free, default=1))
