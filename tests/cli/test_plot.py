"""The text plot: its shape, and its behaviour at the edges."""

from hypothesis import given
from hypothesis import strategies as st

from factory.cli.plot import bars, curve

FINITE = st.floats(-1e6, 1e6)


@given(st.lists(FINITE, min_size=1, max_size=300), st.integers(1, 80), st.integers(1, 12))
def test_every_line_has_the_same_width(values: list[float], width: int, height: int) -> None:
    lines = curve(values, width=width, height=height)
    assert len(lines) == height
    bars = {len(line.split("│")[1]) for line in lines}
    assert len(bars) == 1
    assert bars.pop() <= width


def test_the_highest_value_reaches_the_top_and_the_lowest_the_bottom() -> None:
    lines = curve([8.0, 1.0, 4.0, 2.0], width=4, height=4)
    assert lines[0].split("│")[1] == "█   "
    assert lines[-1].split("│")[1] == "█▁█▅"
    assert lines[-1].strip().startswith("1.00")


def test_equal_values_are_a_flat_line() -> None:
    assert curve([3.0, 3.0], width=2, height=2)[-1].split("│")[1] == "▁▁"


def test_bars_are_as_long_as_their_counts_and_never_nothing() -> None:
    assert bars({"1": 1, "16": 800, "2": 0}, width=10) == [
        " 1 │▏ 1",
        f"16 │{'█' * 10} 800",
        " 2 │ 0",
    ]
    assert bars({}) == []
    assert bars({"a": 0}) == ["a │ 0"]
