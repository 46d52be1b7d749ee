"""Messages in OpenAI's form, and in those of others who write roles and typed parts."""

import base64
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from factory.data import Images
from factory.data.chat import openai, tools
from factory.data.kinds import Message, Text, ToolCall
from factory.errors import BadRow

USER = {"role": "user", "content": "Who?"}
ANSWER = {"role": "assistant", "content": "Ada."}


def read(*messages: object, **options: Any) -> list[Message]:
    return openai.messages({"messages": list(messages)}, **options)


def calling(arguments: object = "{}", **fields: object) -> dict[str, Any]:
    function = {"name": "find", "arguments": arguments}
    called = {"id": "a", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [called]} | fields


def result(content: object = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "a", "name": "find", "content": content}


def test_a_conversation_with_a_call():
    found = read({"role": "system", "content": "Help."}, USER, calling(), result(), ANSWER)
    assert found == [
        Message.of("system", "Help."),
        Message.of("user", "Who?"),
        Message.of("assistant", (), [ToolCall("a", "find", "{}")]),
        Message.of("tool", "found", tool_call_id="a", name="find"),
        Message.of("assistant", "Ada."),
    ]


def test_arguments_stay_the_text_that_was_written():
    written = '{ "b": 1.50,\n"a": "\\u00e9" }'
    assert read(USER, calling(written))[1].tool_calls[0].arguments == written
    assert (
        read(USER, calling({"b": 1, "a": "é"}))[1].tool_calls[0].arguments == '{"b": 1, "a": "é"}'
    )


@pytest.mark.parametrize(
    "arguments", [None, "", "{", "[]", "3", [], 3, '"{}"', '{"a": NaN}', {"a": float("inf")}]
)
def test_arguments_that_are_no_object(arguments: object):
    with pytest.raises(BadRow, match="tool call arguments are not a JSON object"):
        read(USER, calling(arguments), result(), ANSWER)


def test_the_older_form():
    older = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    found = read(USER, older, {"role": "function", "name": "f", "content": "1"}, ANSWER)
    assert found[1].tool_calls == (ToolCall("call_1", "f", "{}"),)
    assert found[2] == Message.of("tool", "1", tool_call_id="call_1", name="f")


def test_null_content_is_well_beside_a_call_and_nothing_without():
    assert read(USER, calling())[1].parts == ()
    for empty in (None, "", " \n", [], [{"type": "text", "text": ""}]):
        with pytest.raises(BadRow, match="empty assistant turn"):
            read(USER, {"role": "assistant", "content": empty})
        with pytest.raises(BadRow, match="empty user turn"):
            read({"role": "user", "content": empty}, ANSWER)
    with pytest.raises(BadRow, match="empty assistant turn"):
        read(USER, {"role": "assistant"})
    with pytest.raises(BadRow, match="tool result without content"):
        read(USER, calling(), result(None), ANSWER)
    assert read(USER, calling(), result(""), ANSWER)[2].parts == ()


def test_typed_parts_keep_their_order():
    parts = [{"type": "text", "text": "a"}, "b", {"type": "input_text", "value": "c"}]
    assert read({"role": "user", "content": parts}, ANSWER)[0].parts == (
        Text("a"),
        Text("b"),
        Text("c"),
    )


def picture(kind: str = "PNG") -> tuple[bytes, str]:
    data = io.BytesIO()
    Pillow.new("RGB", (2, 3), "red").save(data, kind)
    address = f"data:image/{kind.lower()};base64,{base64.b64encode(data.getvalue()).decode()}"
    return data.getvalue(), address


@pytest.mark.parametrize("wrap", [lambda url: {"url": url, "detail": "low"}, lambda url: url])
def test_an_image_in_the_row(wrap: Any):
    _, address = picture()
    content = ["Look: ", {"type": "image_url", "image_url": wrap(address)}]
    found = read({"role": "user", "content": content}, ANSWER, images=Images())
    image = found[0].parts[1].data  # type: ignore[union-attr]
    assert (image.width, image.height, image.format) == (2, 3, "png")
    assert found[0].parts[1].image == image.sha256  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("reason", "part"),
    [
        ("image outside the row", {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}),
        (
            "image outside the row",
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        ),
        ("image outside the row", {"type": "image_url"}),
        ("image outside the row", {"type": "image_url", "image_url": None}),
        ("image is not base64", {"type": "image_url", "image_url": "data:image/png;base64,@@"}),
        ("image is not base64", {"type": "image_url", "image_url": "data:image/png;base64,é"}),
        ("image is not base64", {"type": "image_url", "image_url": "data:image/png,%89PNG"}),
        ("a part of an unknown type", {"type": "input_audio"}),
        ("a part of an unknown type", {"text": "untyped"}),
        ("a part of an unknown type", {"type": ["text"], "text": "x"}),
        ("a part is neither text nor an object", 3),
        ("a text part without text", {"type": "text"}),
        ("a text part without text", {"type": "text", "text": 3}),
        ("reasoning is not text", {"type": "reasoning"}),
        ("tool call is not JSON", {"type": "tool_call", "value": "find()"}),
        ("tool call is not JSON", {"type": "tool_call"}),
    ],
)
def test_parts_that_cannot_be_kept(reason: str, part: object):
    with pytest.raises(BadRow) as caught:
        read({"role": "user", "content": ["x", part]}, ANSWER, images=Images(), reasoning="think")
    assert caught.value.reason == reason


def test_an_image_where_the_declaration_expects_none():
    content = [{"type": "image_url", "image_url": {"url": picture()[1]}}]
    with pytest.raises(BadRow, match="declares nothing about images"):
        read({"role": "user", "content": content}, ANSWER)


@pytest.mark.parametrize(
    ("reason", "messages"),
    [
        ("unknown role", [{"role": "critic", "content": "x"}]),
        ("unknown role", [{"role": None, "content": "x"}]),
        ("unknown role", [{"role": ["user"], "content": "x"}]),
        ("unknown role", [{"content": "x"}]),
        ("a message is not an object", ["x"]),
        ("a message is not an object", [None]),
        ("no messages", []),
        ("no assistant turn", [USER]),
        ("content is neither text nor a list of parts", [{"role": "user", "content": {}}]),
        ("tool result without a call", [USER, result(), ANSWER]),
        ("tool calls are not a list", [USER, ANSWER | {"tool_calls": {"a": 1}}]),
        ("tool call is not an object", [USER, ANSWER | {"tool_calls": ["find"]}]),
        ("tool call is not an object", [USER, ANSWER | {"tool_calls": [{"id": "a"}]}]),
        ("tool call is not an object", [USER, ANSWER | {"function_call": "find"}]),
        ("tool call without a name", [USER, ANSWER | {"function_call": {"arguments": "{}"}}]),
        (
            "tool call of another type than function",
            [USER, ANSWER | {"tool_calls": [{"type": "custom", "id": "a"}]}],
        ),
        ("name is not text", [USER | {"name": 3}, ANSWER]),
        ("tool_call_id is not text", [USER, calling(), result() | {"tool_call_id": 3}]),
        ("weight is neither 0 nor 1", [USER, ANSWER | {"weight": 0.5}]),
        ("weight is neither 0 nor 1", [USER, ANSWER | {"weight": "1"}]),
        ("reasoning in a turn", [USER, ANSWER | {"reasoning_content": "Hm."}]),
        ("a refusal or sound beside the content", [USER, ANSWER | {"refusal": "No."}]),
        ("a refusal or sound beside the content", [USER, ANSWER | {"audio": {"id": "x"}}]),
    ],
)
def test_forms_that_are_none(reason: str, messages: list[object]):
    with pytest.raises(BadRow) as caught:
        read(*messages)
    assert caught.value.reason == reason


@pytest.mark.parametrize("value", [None, {}, "[]", 3])
def test_messages_that_are_no_list(value: object):
    with pytest.raises(BadRow, match="messages are not a list"):
        openai.messages({"messages": value})
    with pytest.raises(BadRow, match="messages are not a list"):
        openai.messages({})


def test_a_weight_says_whether_a_turn_is_trained_on():
    turns = [USER, ANSWER | {"weight": 0}, USER, ANSWER | {"weight": 1}, ANSWER]
    assert [one.trained for one in read(*turns)] == [None, False, None, True, None]


def test_reasoning_stays_or_goes_as_declared():
    turn = {"role": "assistant", "content": [{"type": "reasoning", "value": "Hm."}, "Ada."]}
    beside = ANSWER | {"reasoning_content": "Hm."}
    for one in (turn, beside):
        with pytest.raises(BadRow, match="reasoning in a turn"):
            read(USER, one)
        assert read(USER, one, reasoning="think")[1].text == "<think>\nHm.\n</think>\n\nAda."
        assert read(USER, one, reasoning="leave out")[1].text == "Ada."
    alone = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}
    with pytest.raises(BadRow, match="empty assistant turn"):
        read(USER, alone, reasoning="leave out")


def test_other_names_for_roles():
    turns = [USER, {"role": "agent", "content": "x"}]
    with pytest.raises(BadRow, match="unknown role"):
        read(*turns)
    assert read(*turns, roles={"agent": "assistant"})[1].role == "assistant"


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "tool_calls", "function", "name", "arguments"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.lists(st.one_of(JSON, st.fixed_dictionaries({"role": st.just("user"), "content": JSON}))))
def test_whatever_comes_is_read_or_rejected(messages: list[Any]):
    try:
        found = read(*messages, ANSWER)
    except BadRow:
        return
    assert len(found) == len(messages) + 1


WRAPPED = [{"type": "function", "function": {"name": "find", "parameters": {}}}]


def test_tools_get_one_form():
    bare = [{"name": "find", "parameters": {}}]
    for given_tools in (bare, WRAPPED, json.dumps(bare), json.dumps(WRAPPED)):
        assert json.loads(tools({"tools": given_tools}) or "") == WRAPPED
    assert json.loads(tools({"functions": bare}, "functions") or "") == WRAPPED


@pytest.mark.parametrize("nothing", [None, "", "[]", [], " ", "null"])
def test_no_tools(nothing: object):
    assert tools({"tools": nothing}) is None
    assert tools({}) is None


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("tools are not JSON", "[{"),
        ("tools are not a list", "{}"),
        ("tools are not a list", {"name": "find"}),
        ("tools are not a list", 3),
        ("a tool is not an object", ["find"]),
        ("a tool is not a function", [{"type": "retrieval"}]),
        ("a tool is not a function", [{"type": "function", "function": "find"}]),
        ("a tool without a name", [{"parameters": {}}]),
        ("a tool without a name", [{"name": " "}]),
    ],
)
def test_tools_that_are_none(reason: str, value: object):
    with pytest.raises(BadRow) as caught:
        tools({"tools": value})
    assert caught.value.reason == reason
