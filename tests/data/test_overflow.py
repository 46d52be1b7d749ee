"""Overflow: every token is kept once or counted, and no cut tears an image."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.packing import Breaks, Fitted, Kept, Span, fit
from factory.data.packing.overflow import TOO_LONG, UNBREAKABLE

POLICIES = ("split", "truncate_middle", "drop")


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[bool], int, Breaks]:
    mask = draw(st.lists(st.booleans(), max_size=80))
    edges = sorted(draw(st.sets(st.integers(0, len(mask)), max_size=8)))
    return (
        mask,
        draw(st.integers(1, 40)),
        Breaks(
            paragraphs=sorted(draw(st.sets(st.integers(0, len(mask)), max_size=6))),
            sentences=sorted(draw(st.sets(st.integers(0, len(mask)), max_size=12))),
            whole=[Span(*pair) for pair in zip(edges[::2], edges[1::2], strict=False)],
        ),
    )


def kept(fitted: Fitted) -> list[int]:
    return [n for piece in fitted.pieces for start, stop in piece.spans for n in range(start, stop)]


@given(samples(), st.sampled_from(POLICIES))
def test_every_token_is_kept_once_truncated_or_dropped(sample, policy):
    mask, context, breaks = sample
    fitted = fit(policy, mask, context, breaks)
    positions = kept(fitted)
    assert positions == sorted(set(positions))
    if fitted.dropped:
        assert (fitted.pieces, fitted.truncated) == ((), 0)
    else:
        assert len(positions) + fitted.truncated == len(mask)
    for piece in fitted.pieces:
        assert piece.tokens <= context
        assert piece.loss_tokens == sum(mask[n] for n in kept(Fitted(pieces=(piece,))))
    if policy == "split":
        assert fitted.truncated == 0
    if len(mask) <= context:
        assert fitted == Fitted(pieces=(Kept((Span(0, len(mask)),), sum(mask)),))


@given(samples(), st.sampled_from(POLICIES))
def test_an_image_is_whole_or_not_there(sample, policy):
    mask, context, breaks = sample
    fitted = fit(policy, mask, context, breaks)
    for start, stop in breaks.whole:
        image = set(range(start, stop))
        assert all(
            image & found in (set(), image)
            for found in (set(kept(Fitted(pieces=(piece,)))) for piece in fitted.pieces)
        )
    if fitted.dropped == UNBREAKABLE:
        reach = context if policy == "split" else context // 2
        assert any(stop - start > reach for start, stop in breaks.whole)


@given(st.integers(0, 300), st.integers(1, 40))
def test_split_without_breaks_is_full_pieces_and_a_remainder(length, context):
    fitted = fit("split", [1] * length, context)
    sizes = [piece.tokens for piece in fitted.pieces]
    assert sizes[:-1] == [context] * (len(sizes) - 1)
    assert sum(sizes) == length


def test_split_prefers_paragraphs_then_sentences_that_leave_half_a_context():
    breaks = Breaks(paragraphs=[2, 7, 17, 21, 33], sentences=[4, 9, 16, 26, 30])
    fitted = fit("split", [1] * 45, 10, breaks)
    assert [piece.spans for piece in fitted.pieces] == [
        (Span(0, 7),),
        (Span(7, 17),),
        (Span(17, 26),),
        (Span(26, 33),),
        (Span(33, 43),),
        (Span(43, 45),),
    ]


def test_truncate_middle_keeps_both_ends():
    mask = np.zeros(20, dtype=bool)
    mask[[0, 9, 10, 19]] = True
    fitted = fit("truncate_middle", mask, 7)
    (piece,) = fitted.pieces
    assert piece.of(np.arange(20)).tolist() == [0, 1, 2, 3, 17, 18, 19]
    assert (piece.loss_tokens, fitted.truncated) == (2, 13)
    assert fit("truncate_middle", mask, 1).pieces[0].spans == (Span(0, 1),)


def test_an_image_at_the_cut_goes_to_the_next_piece_or_out_of_the_middle():
    image = Breaks(whole=[Span(8, 14)])
    fitted = fit("split", [1] * 18, 10, image)
    assert [piece.spans[0] for piece in fitted.pieces] == [Span(0, 8), Span(8, 18)]
    fitted = fit("truncate_middle", [1] * 22, 18, image)
    assert fitted.pieces[0].spans == (Span(0, 8), Span(14, 22))
    assert fitted.truncated == 6


def test_what_cannot_be_kept_is_dropped_with_its_reason():
    assert fit("drop", [1] * 11, 10).dropped == TOO_LONG
    image = Breaks(whole=[Span(0, 11)])
    assert fit("split", [1] * 11, 10, image).dropped == UNBREAKABLE
    assert fit("truncate_middle", [1] * 11, 10, image).dropped == UNBREAKABLE


def test_a_break_within_an_image_is_none():
    breaks = Breaks(paragraphs=[7], sentences=[6], whole=[Span(5, 9)])
    fitted = fit("split", [1] * 14, 10, breaks)
    assert [piece.spans for piece in fitted.pieces] == [(Span(0, 10),), (Span(10, 14),)]


def test_unknown_policies_and_empty_contexts_are_refused():
    with pytest.raises(ValueError, match="split, truncate_middle, drop"):
        fit("wrap", [1], 10)
    with pytest.raises(ValueError, match="context of 0"):
        fit("split", [1], 0)
