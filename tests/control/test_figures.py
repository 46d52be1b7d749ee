"""Pictures: small PNGs inside markdown, whatever the numbers are."""

import base64
import struct

import pytest

from factory.control.figures import lengths, loss_curve
from factory.data.bins import Bins

EVENT_BYTES = 60_000
"""A picture is stored in the event log with its materialization."""


def size_of(markdown: str) -> tuple[int, int]:
    png = base64.b64decode(markdown.partition("base64,")[2].rstrip(")"))
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def binned(numbers: list[int]) -> Bins:
    bins = Bins()
    for number in numbers:
        bins.add(number)
    return bins


@pytest.mark.parametrize(
    "numbers",
    [[5], [7, 7, 7], [0], [0, 1, 10**6], list(range(1, 200)), [10**9] * 3 + [1], [2, 3]],
    ids=["one", "equal", "zero", "from-zero", "linear", "wide", "two"],
)
def test_lengths(numbers: list[int]) -> None:
    markdown = lengths(binned(numbers), unit="tokens")
    assert size_of(markdown) == (616, 275)
    assert len(markdown) < EVENT_BYTES
    assert markdown.startswith(f"![Histogram of {len(numbers):,} samples")


def test_no_lengths_have_no_picture() -> None:
    assert lengths(Bins(), unit="tokens") == ""


@pytest.mark.parametrize("losses", [[3.0], [9.0, 2.0], [1.5] * 50])
def test_loss_curve(losses: list[float]) -> None:
    markdown = loss_curve(list(range(1, len(losses) + 1)), losses)
    assert size_of(markdown) == (616, 275)
    assert f"in {len(losses)} steps" in markdown
