"""Turns in ShareGPT's form and its variants for calling functions."""

import json
from typing import Any

import pytest

from factory.data.chat import sharegpt
from factory.data.kinds import Message, Picture, Text, ToolCall
from factory.errors import BadRow
from tests.data.kinds import image

HUMAN = ("human", "Who?")
GPT = ("gpt", "Ada.")
CALL = json.dumps({"name": "find", "arguments": {"who": "é"}}, ensure_ascii=False)


def record(*turns: tuple[str, Any], **fields: object) -> dict[str, Any]:
    return {"conversations": [{"from": who, "value": what} for who, what in turns]} | fields


def read(*turns: tuple[str, Any], **options: Any) -> list[Message]:
    return sharegpt.messages(record(*turns), **options)


def test_plain_turns():
    assert read(("system", "Help."), HUMAN, GPT, ("user", "And?"), ("assistant", "No.")) == [
        Message.of("system", "Help."),
        Message.of("user", "Who?"),
        Message.of("assistant", "Ada."),
        Message.of("user", "And?"),
        Message.of("assistant", "No."),
    ]


@pytest.mark.parametrize(
    "names", [("function_call", "observation"), ("tool_call", "tool_response")]
)
def test_calls_are_turns_of_the_assistant(names: tuple[str, str]):
    found = read(HUMAN, (names[0], CALL), (names[1], "found"), GPT)
    assert found[1] == Message.of("assistant", (), [ToolCall("call_1", "find", '{"who": "é"}')])
    assert found[2] == Message.of("tool", "found", tool_call_id="call_1", name="find")


def test_arguments_may_be_json_in_a_string_in_json():
    inner = '{"who":  "Ada"}'
    call = json.dumps({"name": "find", "arguments": inner})
    assert read(HUMAN, ("function_call", call))[1].tool_calls[0].arguments == inner


def test_several_calls_in_one_turn():
    found = read(HUMAN, ("function_call", f"[{CALL}, {CALL}]"), ("tool", "1"), ("tool", "2"), GPT)
    assert [one.id for one in found[1].tool_calls] == ["call_1", "call_2"]
    assert [one.tool_call_id for one in found[2:4]] == ["call_1", "call_2"]


def test_what_is_said_before_a_call_stays_a_turn_of_its_own():
    found = read(HUMAN, ("gpt", "Let me look."), ("function_call", CALL), ("observation", "1"), GPT)
    assert [one.role for one in found] == ["user", "assistant", "assistant", "tool", "assistant"]


def test_the_record_may_have_a_system_text_of_its_own():
    assert sharegpt.messages(record(HUMAN, GPT, system="Help."))[0] == Message.of("system", "Help.")
    assert len(sharegpt.messages(record(HUMAN, GPT, system=""))) == 2
    with pytest.raises(BadRow, match="value is not text"):
        sharegpt.messages(record(HUMAN, GPT, system=["Help."]))


@pytest.mark.parametrize(
    ("reason", "turns"),
    [
        ("unknown role", [("critic", "x")]),
        ("unknown role", [(None, "x")]),
        ("a turn's value is not text", [("human", 3)]),
        ("a turn's value is not text", [("human", ["x"])]),
        ("empty user turn", [("human", None), GPT]),
        ("empty assistant turn", [HUMAN, ("gpt", "")]),
        ("no assistant turn", [HUMAN]),
        ("no messages", []),
        ("tool result without a call", [HUMAN, ("observation", "x"), GPT]),
        ("tool result without content", [HUMAN, ("function_call", CALL), ("tool", None)]),
        ("tool call without a result", [HUMAN, ("function_call", CALL), GPT]),
        ("tool call is not JSON", [HUMAN, ("function_call", "find()"), ("tool", "x"), GPT]),
        ("tool call is not JSON", [HUMAN, ("function_call", None), ("tool", "x"), GPT]),
        ("tool call is not an object", [HUMAN, ("function_call", "3"), ("tool", "x"), GPT]),
        ("tool call is not an object", [HUMAN, ("function_call", "[]"), ("tool", "x"), GPT]),
        ("tool call without a name", [HUMAN, ("function_call", "{}"), ("tool", "x"), GPT]),
        (
            "tool call arguments are not a JSON object",
            [HUMAN, ("function_call", '{"name": "f", "arguments": "{"}')],
        ),
    ],
)
def test_forms_that_are_none(reason: str, turns: list[tuple[str, Any]]):
    with pytest.raises(BadRow) as caught:
        read(*turns)
    assert caught.value.reason == reason


def test_turns_that_are_no_list_or_no_objects():
    with pytest.raises(BadRow, match="turns are not a list"):
        sharegpt.messages({"conversations": "x"})
    with pytest.raises(BadRow, match="a turn is not an object"):
        sharegpt.messages({"conversations": ["x"]})


def test_another_field_other_names_and_weights():
    turns = [{"from": "human", "value": "a"}, {"from": "bot", "value": "b", "weight": 0}]
    found = sharegpt.messages({"turns": turns}, "turns", roles={"bot": "assistant"})
    assert found[1] == Message.of("assistant", "b", trained=False)


def test_images_go_to_their_places():
    one, two = image(b"1"), image(b"2")
    given = record(("human", "<image>What? <image>"), GPT, images=["1.png", "2.png"])
    assert sharegpt.messages(given, images=[one, two])[0].parts == (
        Picture(one.sha256),
        Text("What? "),
        Picture(two.sha256),
    )
    for images, reason in (
        ((), "images, video or sound beside the turns"),
        ((one,), "images, video or sound beside the turns"),
        ((one, two, one), "more images than places"),
    ):
        with pytest.raises(BadRow, match=reason):
            sharegpt.messages(given, images=images)
    with pytest.raises(BadRow, match="more places for images than images"):
        read(("human", "<image><image>"), GPT, images=[one])
    with pytest.raises(BadRow, match="beside the turns"):
        sharegpt.messages(record(HUMAN, GPT, videos="a.mp4"))


def test_calls_between_tags():
    called = f"Let me see.\n<tool_call>\n{CALL}\n</tool_call>"
    answered = "<tool_response>\nfound\n</tool_response>"
    found = read(HUMAN, ("gpt", called), ("tool", answered), GPT, tags=True)
    assert found[1].text == "Let me see.\n"
    assert found[1].tool_calls == (ToolCall("call_1", "find", '{"who": "é"}'),)
    assert found[2] == Message.of("tool", "found", tool_call_id="call_1", name="find")
    assert read(HUMAN, ("gpt", f"<tool_call>{CALL}</tool_call>"), tags=True)[1].parts == ()


def test_several_calls_and_results_between_tags():
    called = f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>"
    answered = "<tool_response>1</tool_response>\n<tool_response>2</tool_response>"
    found = read(HUMAN, ("gpt", called), ("tool", answered), GPT, tags=True)
    assert [one.text for one in found] == ["Who?", "", "1", "2", "Ada."]


def test_tags_that_cannot_be_read():
    for said in ("<tool_call>{}", f"<tool_call>{CALL}</tool_call></tool_call>"):
        with pytest.raises(BadRow, match="without its other tag"):
            read(HUMAN, ("gpt", said), tags=True)
    called = ("gpt", f"<tool_call>{CALL}</tool_call>")
    with pytest.raises(BadRow, match="text beside a tool response"):
        read(HUMAN, called, ("tool", "x <tool_response>1</tool_response>"), GPT, tags=True)
    assert read(HUMAN, called, ("tool", "plain"), GPT, tags=True)[2].text == "plain"
    assert read(HUMAN, GPT, tags=True)[1].text == "Ada."
