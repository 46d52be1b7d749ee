"""What is a conversation and what is not, whatever form it came in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.chat import merged
from factory.data.chat.rules import verified
from factory.data.chat.turns import conversation
from factory.data.kinds import Message, ToolCall
from factory.data.sample import Sample
from factory.errors import BadRow
from tests.data import kinds
from tests.data.kinds import call, image

USER, ANSWER = Message.of("user", "Who?"), Message.of("assistant", "Ada.")


def calling(*ids: str, said: str = "") -> Message:
    return Message.of("assistant", said, [call(call_id=one) for one in ids])


def result(call_id: str | None, text: str = "found") -> Message:
    return Message.of("tool", text, tool_call_id=call_id)


REFUSED = {
    "no messages": [],
    "unknown role": [USER, Message.of("critic", "Hm."), ANSWER],
    "no assistant turn": [Message.of("system", "Help."), USER],
    "empty user turn": [Message.of("user"), ANSWER],
    "empty system turn": [Message.of("system", " \u200b\n"), USER, ANSWER],
    "empty assistant turn": [USER, Message.of("assistant"), USER, ANSWER],
    "tool call of another role": [Message.of("user", "Do.", [call()]), ANSWER],
    "tool call without an id": [USER, calling(""), result("")],
    "two tool calls with one id": [USER, calling("a", "a"), result("a"), ANSWER],
    "tool result without a call": [USER, result("a"), ANSWER],
    "tool call id of another role": [Message.of("user", "x", tool_call_id="a"), ANSWER],
    "tool call without a result": [USER, calling("a"), USER, ANSWER],
}


@pytest.mark.parametrize(("reason", "messages"), REFUSED.items())
def test_each_broken_rule_has_its_reason(reason: str, messages: list[Message]):
    with pytest.raises(BadRow) as caught:
        verified(messages)
    assert caught.value.reason == reason
    with pytest.raises(BadRow, match=reason):
        Sample.conversation(id="c", messages=messages)


@pytest.mark.parametrize(
    ("reason", "messages"),
    [
        ("tool result without a call", [USER, calling("a"), result("b"), ANSWER]),
        ("tool result without a call", [USER, calling("a"), result("a"), result("a"), ANSWER]),
        ("tool result without a call", [USER, calling("a"), result("a"), ANSWER, result("a")]),
        ("tool result without a call", [USER, calling("a"), result(None), ANSWER]),
        ("tool call without a result", [USER, calling("a", "b"), result("a"), ANSWER]),
        ("tool call of another role", [USER, calling("a"), Message("tool", (), (call(),), "a")]),
        ("no assistant turn", [USER]),
    ],
)
def test_calls_and_results_belong_together(reason: str, messages: list[Message]):
    with pytest.raises(BadRow, match=reason):
        verified(messages)


@pytest.mark.parametrize(
    "messages",
    [
        [USER, calling("a")],
        [USER, calling("a", "b"), result("b"), result("a"), ANSWER],
        [USER, calling("a", "b"), result("b")],
        [USER, calling("a"), result("a", ""), ANSWER],
        [USER, USER, ANSWER, ANSWER],
        [USER, ANSWER, Message.of("system", "Now in French."), USER, ANSWER],
        [ANSWER, USER],
        [ANSWER],
        [Message.of("user", image()), ANSWER],
        [USER, calling("a"), result("a"), calling("a"), result("a"), ANSWER],
    ],
    ids=[
        "a call at the end",
        "results in another order",
        "not all results at the end",
        "an empty result",
        "turns of one role in a row",
        "a later system turn",
        "the user at the end",
        "the assistant alone",
        "an image alone",
        "an id used again later",
    ],
)
def test_what_is_allowed_stays_as_it_is(messages: list[Message]):
    assert verified(messages) == tuple(messages)
    assert conversation(messages)[-1].parts == messages[-1].parts


@given(sample=kinds.CONVERSATIONS)
def test_no_conversation_is_changed(sample: Sample):
    assert Sample.conversation(id="c", messages=sample.content.messages)  # type: ignore[union-attr]


def test_turns_in_a_row_are_joined_where_that_is_wanted():
    said = [Message.of("user", text) for text in ("One.", "Two.")]
    picture = Message.of("user", [image(), "Three."])
    found = merged([*said, picture, ANSWER, calling("a"), result("a"), result("b"), ANSWER])
    assert [one.role for one in found] == ["user", "assistant", "tool", "tool", "assistant"]
    assert found[0] == Message.of("user", ["One.\n\nTwo.", image(), "Three."])
    assert found[1] == Message.of("assistant", "Ada.", [call(call_id="a")])


def test_turns_that_differ_in_more_than_their_text_stay_apart():
    trained = Message.of("assistant", "a", trained=True)
    named = Message.of("assistant", "b", name="Ada")
    called = calling("a")
    assert merged([trained, named, called, called]) == [trained, named, called, called]


@given(st.lists(st.sampled_from("ua"), max_size=6))
def test_joining_loses_no_text_and_is_done_at_once(roles: list[str]):
    turns = [
        Message.of({"u": "user", "a": "assistant"}[role], f"text {number}")
        for number, role in enumerate(roles)
    ]
    found = merged(turns)
    text = "\n\n".join(one.text for one in found)
    assert text == "\n\n".join(one.text for one in turns)
    assert merged(found) == found


def test_calls_without_ids_are_numbered_and_answered_in_order():
    calls = [ToolCall("", "find", "{}"), ToolCall("", "sum", "{}")]
    turns = [
        USER,
        Message.of("assistant", "", calls),
        result(None, "1"),
        result(None, "2"),
        Message.of("assistant", "", calls[:1]),
        result(None, "3"),
    ]
    found = conversation(turns)
    assert [one.id for turn in found for one in turn.tool_calls] == ["call_1", "call_2", "call_3"]
    answers = [(one.tool_call_id, one.name, one.text) for one in found if one.role == "tool"]
    assert answers == [("call_1", "find", "1"), ("call_2", "sum", "2"), ("call_3", "find", "3")]


JOINT = (
    '[{"tool_call_id": "x", "name": "find", "content": "one"},'
    ' {"tool_call_id": "y", "name": "sum", "content": {"n": 2}}]'
)


def test_one_result_for_several_calls_is_taken_apart():
    calls = [ToolCall("", "find", "{}"), ToolCall("", "sum", "{}")]
    found = conversation([USER, Message.of("assistant", "", calls), result(None, JOINT), ANSWER])
    assert [one.id for one in found[1].tool_calls] == ["x", "y"]
    assert [(one.tool_call_id, one.name, one.text) for one in found[2:4]] == [
        ("x", "find", "one"),
        ("y", "sum", '{"n": 2}'),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "found",
        "[]",
        "{}",
        "[1, 2]",
        "[" * 100_000,
        JOINT.replace("sum", "product"),
        JOINT.replace('"content"', '"more": 1, "content"'),
    ],
    ids=lambda text: text[:30],
)
def test_a_joint_result_that_does_not_say_whose_it_is(text: str):
    calls = [ToolCall("", "find", "{}"), ToolCall("", "sum", "{}")]
    with pytest.raises(BadRow, match="tool call without a result"):
        conversation([USER, Message.of("assistant", "", calls), result(None, text), ANSWER])
