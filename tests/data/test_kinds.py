"""The kinds of sample: what they hold, what they refuse, and their form as JSON."""

import json

import pytest
from hypothesis import given

from factory.data.kinds import (
    CONTENTS,
    KINDS,
    Conversation,
    ImageText,
    Message,
    Picture,
    Question,
    Text,
    ToolCall,
)
from factory.data.parts import parts_of, seen
from factory.data.sample import Sample, canonical
from factory.errors import BadRow
from tests.data import kinds


@pytest.mark.parametrize("sample", kinds.samples(), ids=lambda one: one.kind)
def test_json_keeps_every_field(sample: Sample):
    assert Sample.from_dict(json.loads(canonical(sample.as_dict()))) == sample


@given(sample=kinds.SAMPLES)
def test_json_keeps_any_sample(sample: Sample):
    assert Sample.from_dict(json.loads(canonical(sample.as_dict()))) == sample


def test_the_form_of_a_conversation():
    sample = Sample.conversation(
        id="c",
        messages=[
            Message.of("user", ["Look: ", kinds.image()]),
            Message.of("assistant", (), [kinds.call()]),
        ],
    )
    turn = {"tool_calls": [], "tool_call_id": None, "name": None, "trained": None}
    called = {"id": "c1", "name": "find", "arguments": '{"who": "Ada"}'}
    assert sample.as_dict() == {
        "id": "c",
        "group": "",
        "kind": "conversation",
        "source": "",
        "license": "",
        "meta": {},
        "conversation": {
            "tools": None,
            "messages": [
                turn
                | {
                    "role": "user",
                    "parts": [
                        {"text": "Look: ", "image": None},
                        {"text": None, "image": kinds.image().sha256},
                    ],
                },
                turn | {"role": "assistant", "parts": [], "tool_calls": [called]},
            ],
        },
    }


def test_every_kind_has_one_type():
    assert {kind: KINDS[content] for kind, content in CONTENTS.items()} == {
        kind: kind for kind in CONTENTS
    }
    assert {one.kind for one in kinds.samples()} == set(CONTENTS)


def test_images_stay_beside_the_sample_and_count_for_nothing_else():
    picture = kinds.image()
    sample = Sample.image_text(id="i", parts=[picture, "A cell.", picture])
    assert sample.images == {picture.sha256: picture}
    assert [one.image for one in sample.pictures] == [picture.sha256] * 2
    bare = Sample.from_dict(sample.as_dict())
    assert not bare.images
    assert bare == sample
    assert "not decoded" not in repr(sample)


def test_characters_are_those_of_all_text():
    found = {one.kind: one.characters for one in kinds.samples()}
    assert found["document"] == len("TitleOne.TwoZwei 漢 🩺")
    assert found["question"] == len("Why?abBSo.")
    called = 'find{"who": "Ada"}'
    spoken = "Help.What is this?Nothing.Nothing.Thanks."
    assert found["conversation"] == len('[{"name": "find"}]') + len(called) + len(spoken)
    assert found["image_text"] == len("Figure 1. A cell.")


def test_parts_may_be_written_as_they_are():
    picture = kinds.image()
    assert parts_of("a") == (Text("a"),)
    assert parts_of(picture) == (Picture(picture.sha256),)
    assert parts_of([Text("a"), picture, "b"]) == (
        Text("a"),
        Picture(picture.sha256),
        Text("b"),
    )
    assert parts_of(["", "a"]) == (Text("a"),)
    assert parts_of(" ") == (Text(" "),)
    with pytest.raises(TypeError, match="a part is int"):
        parts_of([3])  # type: ignore[list-item]


def test_text_alone_is_no_image_text():
    with pytest.raises(ValueError, match="no image"):
        ImageText((Text("alone"),))


@pytest.mark.parametrize("name", ["", "A" * 64, "0" * 63, "0" * 65, None])
def test_an_image_is_named_by_its_hash(name: str):
    with pytest.raises(ValueError, match="SHA-256"):
        Picture(name)


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", "null", "3", '{"a": NaN}', '{"a": 1} x', '{"a":' * 100_000]
)
def test_arguments_are_a_json_object(arguments: str):
    with pytest.raises(ValueError, match="not a JSON object"):
        ToolCall("c", "find", arguments)


@pytest.mark.parametrize(
    "text", ["", " ", "\t\r\n", "\u200b", "\ufeff", "\u2060 \u00ad", "\x00", "\u3000\u00a0"]
)
def test_text_in_which_there_is_nothing_to_read(text: str):
    assert not seen(text)
    with pytest.raises(ValueError, match="is empty"):
        Sample.document(id="d", title="T", sections=[("", text)])
    with pytest.raises(ValueError, match="question is empty"):
        Sample.question(id="q", question=text, answer="a")
    with pytest.raises(ValueError, match="id is empty"):
        Sample.document(id=text, title="T", sections=[("", "x")])


@pytest.mark.parametrize("text", ["x", "漢", "م", "🩺", "。", "\u200bא", "ก็", "\u0301"])
def test_one_character_of_any_script_is_text(text: str):
    assert seen(text)
    sample = Sample.document(id="d", title="", sections=[("", text)])
    assert Sample.from_dict(json.loads(canonical(sample.as_dict()))) == sample


def test_a_field_that_is_no_text_names_itself():
    with pytest.raises(TypeError, match="answer is int"):
        Sample.question(id="q", question="Why?", answer=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"meta\['n'\] is int"):
        Sample.document(id="d", title="", sections=[("", "x")], meta={"n": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="option is int"):
        Sample.question(id="q", question="Why?", answer="a", options=[1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no sections"):
        Sample.document(id="d", title="T", sections=[])


@pytest.mark.parametrize("named", ["CC0", "cc by", "MIT License", "0", "CC-BY-4.0,", "\u00e9"])
def test_a_licence_of_a_row_is_spdx(named: str):
    with pytest.raises(BadRow, match="license is no SPDX expression"):
        Sample.question(id="q", question="Why?", answer="So.", license=named)


@pytest.mark.parametrize("named", ["", "MIT", "CC-BY-4.0 AND MIT", "LicenseRef-own-terms"])
def test_a_row_may_have_a_licence_of_its_own(named: str):
    made = Sample.question(id="q", question="Why?", answer="So.", license=named)
    assert made.license == named


def test_a_text_is_no_list_of_options():
    """To Python it is one of letters."""
    with pytest.raises(TypeError, match="options is one text"):
        Sample.question(id="q", question="Why?", answer="a", options="abc")
    with pytest.raises(TypeError, match="options is one text"):
        Question("Why?", "a", "abc")  # type: ignore[arg-type]


@pytest.mark.parametrize("tools", ["not json", "", "{}", '"x"', "[NaN]", "[" * 100_000])
def test_declared_tools_are_a_list(tools: str):
    messages = [Message.of("user", "Hello?"), Message.of("assistant", "Yes?")]
    with pytest.raises(ValueError, match="tools is not the JSON text of a list"):
        Sample.conversation(id="c", messages=messages, tools=tools)


@pytest.mark.parametrize(
    "messages",
    [(), (Message.of("user", "Hello?"),), (Message.of("nobody", "Hello?"),)],
    ids=["none", "unanswered", "unknown"],
)
def test_a_conversation_made_by_hand_keeps_the_rules(messages: tuple[Message, ...]):
    with pytest.raises(BadRow):
        Sample(id="c", content=Conversation(messages))


def test_what_is_no_content_is_refused():
    with pytest.raises(TypeError, match="content is dict, no kind of sample"):
        Sample(id="c", content={"text": "x"})  # type: ignore[arg-type]
