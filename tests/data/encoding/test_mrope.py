"""Positions in three coordinates, by hand; against transformers in `tests/training/vision`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.encoding.images import Grid
from factory.data.encoding.mrope import positions
from factory.data.packing import Span


def test_text_counts_alike_in_all_three():
    assert positions(4, [], merge=2).tolist() == [[0, 1, 2, 3]] * 3


def test_an_image_is_a_square_behind_the_text_and_text_goes_on_behind_its_longer_side():
    found = positions(11, [(Span(2, 8), Grid(1, 4, 6))], merge=2)
    assert found.tolist() == [
        [0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 7],
        [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7],
        [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7],
    ]


def test_two_images_with_nothing_between():
    found = positions(5, [(Span(0, 4), Grid(1, 4, 4)), (Span(4, 5), Grid(1, 2, 2))], merge=2)
    assert found[:, 4].tolist() == [2, 2, 2]


def test_an_image_with_another_number_of_places_is_refused():
    with pytest.raises(ValueError, match="1 x 2 x 3 tokens is given 5 places"):
        positions(8, [(Span(2, 7), Grid(1, 4, 6))], merge=2)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 4)), max_size=4))
def test_text_never_goes_back_and_never_skips(images):
    """Between images the three agree and grow by one; an image grows by its longer side."""
    spans, at, expected = [], 0, 0
    for before, rows, columns in images:
        at += before
        spans.append((Span(at, at + rows * columns), Grid(1, 2 * rows, 2 * columns)))
        at += rows * columns
        expected += before + max(rows, columns)
    found = positions(at + 1, spans, merge=2)
    assert found[:, at].tolist() == [expected] * 3
    patches = np.zeros(at + 1, dtype=bool)
    for span, _ in spans:
        patches[span.start : span.stop] = True
    text = found[:, ~patches]
    assert (text[0] == text[1]).all()
    assert (text[0] == text[2]).all()
    assert (np.diff(text[0]) > 0).all()
