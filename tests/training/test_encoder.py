"""Encoding loses nothing: every token after the first is the label of exactly one position."""

import random
from itertools import pairwise

import pytest
from hypothesis import given

from factory.data.encoder import BEGIN, END, PAD, VOCABULARY_SIZE, pieces, text_of, tokens_of
from tests.data import kinds


def document(text, title="", heading=""):
    return {
        "id": "a",
        "kind": "document",
        "document": {"title": title, "sections": [{"heading": heading, "text": text}]},
    }


EVERY_CHARACTER = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)


@pytest.mark.parametrize(
    "text",
    ["", "a", "a" * 15, "a" * 16, "a" * 17, "ä🩺\x00\n", "x" * 1_000_003, EVERY_CHARACTER],
    ids=["empty", "one", "below", "exact", "above", "odd", "huge", "unicode"],
)
@pytest.mark.parametrize("length", [1, 16, 256])
def test_every_token_is_a_label_once(text, length):
    if length == 1:
        text = text[:5_000]
    tokens = tokens_of(text)
    cut = list(pieces(tokens, length))
    labels = [label for piece in cut for label in piece.labels[: piece.trained]]
    assert labels == tokens[1:]
    assert bytes(labels[:-1]).decode() == text
    for piece in cut:
        assert len(piece.tokens) == len(piece.labels) == length
        assert piece.trained >= 1
        assert set(piece.tokens[piece.trained :]) <= {PAD}
        assert set(piece.labels[piece.trained :]) <= {PAD}
    assert all(piece.trained == length for piece in cut[:-1])


def test_a_piece_continues_where_the_one_before_ended():
    cut = list(pieces(tokens_of("continuous"), 4))
    assert all(before.labels[-1] == after.tokens[0] for before, after in pairwise(cut))
    assert cut[0].tokens[0] == BEGIN
    assert cut[-1].labels[cut[-1].trained - 1] == END


def test_ids_are_inside_the_vocabulary():
    assert max(PAD, BEGIN, END, 255) < VOCABULARY_SIZE


def test_a_lone_surrogate_does_not_end_a_run():
    assert tokens_of("\ud800") == [BEGIN, ord("?"), END]


def test_a_document_is_title_headings_and_text():
    assert text_of(document("Text.", "Title", "Methods")) == "Title\n\nMethods\n\nText."
    assert text_of(document("", "", "")) == ""


def test_a_question_is_what_was_asked_and_answered():
    question = {"question": "Why?", "answer": "B", "options": ["a", "b"], "explanation": "So."}
    text = text_of({"id": "q", "kind": "question", "question": question})
    assert text == "Question: Why?\nA. a\nB. b\nAnswer: B\nExplanation: So."
    bare = {"question": "Why?", "answer": "So.", "options": [], "explanation": None}
    assert text_of({"id": "q", "kind": "question", "question": bare}) == (
        "Question: Why?\nAnswer: So."
    )


def test_a_conversation_is_a_line_for_each_turn():
    text = text_of(kinds.samples()[2].as_dict())
    assert text.splitlines() == [
        'tools: [{"name": "find"}]',
        "system: Help.",
        "user: What is this?<image>",
        'assistant calls find({"who": "Ada"})',
        "tool: Nothing.",
        "assistant: Nothing.",
        "user: Thanks.",
    ]


def test_images_stand_in_their_places():
    assert text_of(kinds.samples()[3].as_dict()) == "Figure 1. <image>A cell.<image>"


@given(sample=kinds.SAMPLES)
def test_any_sample_becomes_tokens(sample):
    text = text_of(sample.as_dict())
    assert bytes(tokens_of(text)[1:-1]).decode() == text


def test_an_unknown_kind_is_an_error_that_names_the_sample_and_not_its_text():
    with pytest.raises(ValueError, match="'s1' is of kind 'image'") as caught:
        text_of({"id": "s1", "kind": "image", "image": "SECRET"})
    assert "SECRET" not in str(caught.value)


def test_random_texts_of_random_lengths():
    chance = random.Random(3)
    for _ in range(300):
        text = "".join(chance.choices("aé漢🩺 ", k=chance.randrange(0, 200)))
        length = chance.randrange(1, 90)
        tokens = tokens_of(text)
        assert sum(piece.trained for piece in pieces(tokens, length)) == len(tokens) - 1
