"""Long samples: cut between paragraphs and turns, every position kept or counted, images whole."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.encoding import Encoded, Encoder, expanded, fitted, load
from factory.data.kinds import Message
from factory.data.packing.overflow import NO_LOSS, TOO_LONG, UNBREAKABLE
from factory.data.sample import Sample
from tests.data.kinds import SAMPLES, image

BYTES = Encoder(load("bytes"), chat="plain")


def encoded(encoder: Encoder, sample: Sample) -> Encoded:
    made = encoder.encode(sample.as_dict(), "key")
    assert isinstance(made, Encoded)
    return made


def texts(encoder: Encoder, made: Encoded, context: int) -> list[str]:
    sequences = fitted(made, "split", context).sequences
    return [encoder.tokenizer.decode(one.tokens.tolist()) for one in sequences]


def test_documents_are_split_between_paragraphs():
    sections = [("", "The first. It is long.\n\nThe second."), ("", "The third one, here.")]
    made = encoded(BYTES, Sample.document(id="d", title="Title", sections=sections))
    assert texts(BYTES, made, 33) == [
        "Title\n\nThe first. It is long.\n\n",
        "The second.\n\nThe third one, here.",
    ]


def test_else_between_sentences_or_lines():
    text = "One sentence is here. And another one! 第三句。Is it the last one?\nYes."
    made = encoded(BYTES, Sample.document(id="d", title="", sections=[("", text)]))
    assert texts(BYTES, made, 30) == [
        "One sentence is here.",
        " And another one! 第三句。",
        "Is it the last one?\nYes.",
    ]


def test_conversations_are_split_before_turns(encoder):
    turns = [Message.of("user", "a b c d\n\ne f"), Message.of("assistant", "g h i j k l")] * 3
    made = encoded(encoder, Sample.conversation(id="c", messages=turns))
    found = texts(encoder, made, 40)
    assert len(found) > 1
    assert all(text.startswith("<|im_start|>") for text in found)


def test_prose_is_looked_through_only_where_it_may_be_cut(qwen):
    sample = Sample.document(id="d", title="T", sections=[("", "One.\n\nTwo. Three.")])
    made = encoded(Encoder(qwen, longest=1000), sample)
    assert (list(made.breaks.paragraphs), list(made.breaks.sentences)) == ([], [])
    assert encoded(Encoder(qwen, longest=5), sample).breaks.paragraphs


def test_parts_without_loss_are_dropped_and_counted():
    turns = [Message.of("user", "x" * 50), Message.of("assistant", "yes")]
    made = encoded(BYTES, Sample.conversation(id="c", messages=turns))
    found = fitted(made, "split", 40)
    assert found.dropped[NO_LOSS] == 40
    (second,) = found.sequences
    assert second.tokens.tolist() == made.tokens[40:-1].tolist()


def test_too_long_is_a_reason():
    made = encoded(BYTES, Sample.document(id="d", title="", sections=[("", "x" * 50)]))
    assert fitted(made, "drop", 20).dropped == {TOO_LONG: 51}
    assert not fitted(made, "drop", 51).dropped


@given(
    sample=SAMPLES,
    policy=st.sampled_from(["split", "truncate_middle", "drop"]),
    context=st.integers(1, 60),
    patches=st.integers(1, 4),
)
def test_every_position_is_kept_or_counted(
    encoder: Encoder, sample: Sample, policy: Any, context: int, patches: int
):
    made = encoder.encode(sample.as_dict(), "key")
    if not isinstance(made, Encoded):
        return
    made = expanded(made, [patches] * len(made.images))
    found = fitted(made, policy, context)
    kept = sum(len(one.tokens) for one in found.sequences)
    assert kept + found.truncated + sum(found.dropped.values()) == len(made.tokens) - 1
    tokenizer = encoder.tokenizer
    for one in found.sequences:
        assert len(one.tokens) == len(one.labels) == len(one.loss_mask) <= context
        assert one.loss_mask.any()
        assert tokenizer.image is not None
        pads = np.flatnonzero(one.tokens == tokenizer.image.ids[tokenizer.image.pad])
        assert pads.tolist() == [
            at for place in one.images for at in range(place.pad.start, place.pad.stop)
        ]
    if policy == "split" and not found.dropped:
        together = np.concatenate([one.tokens for one in found.sequences])
        assert together.tolist() == made.tokens[:-1].tolist()


class TestExpanded:
    @pytest.fixture
    def made(self, encoder: Encoder) -> Encoded:
        parts = ["One.\n\nTwo. ", image(), "Three.\n\n", image(b"other"), "Four"]
        return encoded(encoder, Sample.image_text(id="i", parts=parts))

    def test_repeats_the_pad_of_each_image(self, encoder: Encoder, made: Encoded):
        wide = expanded(made, [4, 2])
        assert len(wide.tokens) == len(made.tokens) + 4
        assert [place.pad.stop - place.pad.start for place in wide.images] == [4, 2]
        text = encoder.tokenizer.decode(wide.tokens.tolist())
        assert f"<|vision_start|>{'<|image_pad|>' * 4}<|vision_end|>Three" in text

    def test_moves_breaks_and_loss_along(self, made: Encoded):
        wide = expanded(made, [4, 2])
        assert wide.loss_tokens == made.loss_tokens
        for before, after in (
            (made.breaks.paragraphs, wide.breaks.paragraphs),
            (made.breaks.sentences, wide.breaks.sentences),
        ):
            assert made.tokens[list(before)].tolist() == wide.tokens[list(after)].tolist()

    def test_wants_a_number_for_each_image(self, made: Encoded):
        for patches in ([4], [4, 0], []):
            with pytest.raises(ValueError, match="key shows 2 images"):
                expanded(made, patches)

    def test_no_cut_enters_an_image(self, made: Encoded):
        wide = expanded(made, [30, 30])
        assert fitted(wide, "split", 20).dropped[UNBREAKABLE] == len(wide.tokens) - 1
        found = fitted(wide, "split", 40)
        assert [len(one.images) for one in found.sequences if one.images] == [1, 1]


def test_a_sample_that_fits_is_one_sequence(encoder: Encoder):
    made = encoded(encoder, Sample.document(id="d", title="T", sections=[("", "x")]))
    (one,) = fitted(made, "drop", 100).sequences
    assert one.tokens.tolist() == made.tokens[:-1].tolist()
    assert one.labels.tolist() == made.tokens[1:].tolist()
