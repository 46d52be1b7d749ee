"""Qwen3.5's template: calls between tags, thoughts behind the last question only."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.encoding import qwen35
from factory.data.encoding.probes import PROBES
from factory.data.encoding.runs import text_of
from factory.data.encoding.template import ChatTemplate
from factory.data.loss import Loss
from factory.errors import BadRow, SpecError
from tests.data.encoding import qwen_like

TEMPLATE = ChatTemplate(qwen_like.TEMPLATE_35, "here")
IMAGE = "0" * 64


def turn(role: str, *parts: str | None, calls: Any = (), trained: bool | None = None):
    shown = [{"text": one, "image": None if one is not None else IMAGE} for one in parts]
    return {
        "role": role,
        "parts": shown,
        "tool_calls": [
            {"id": f"{at}", "name": name, "arguments": arguments}
            for at, (name, arguments) in enumerate(calls)
        ],
        "tool_call_id": None,
        "name": None,
        "trained": trained,
    }


def learned(*messages, policy: Loss | None = None) -> str:
    """What carries loss, run by run."""
    runs = qwen35.conversation({"tools": None, "messages": messages}, policy or Loss())
    return "".join(run.text for run in runs if run.loss)


def test_its_rendering_is_what_the_template_writes():
    assert TEMPLATE.rendering() == ("qwen35", qwen35.conversation)


@pytest.mark.parametrize("name", PROBES)
def test_each_probe_is_written_alike(name: str):
    written = text_of(qwen35.conversation(PROBES[name], Loss()))
    assert written == TEMPLATE.render(PROBES[name], parsed=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("value | string", "value | tojson"),
        ("if loop.index0 > asked.last", ""),
        ("seen(message) | trim", "seen(message)"),
    ],
)
def test_a_template_that_differs_a_little_is_refused(before, after):
    assert before in qwen_like.TEMPLATE_35
    other = ChatTemplate(qwen_like.TEMPLATE_35.replace(before, after), "/models/other")
    with pytest.raises(SpecError, match=r"as qwen it differs .*; as qwen35 it differs in"):
        other.rendering()


TEXT = st.text(alphabet=" \n.aé<>", max_size=6)
TAGS = st.sampled_from(["<tool_response>", "</tool_response>"])
PARTS = st.lists(st.one_of(TEXT, TAGS), max_size=3)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-2, 2), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXT, inner, max_size=2)),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(TEXT, VALUES, max_size=2).map(json.dumps)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages = [turn("user", "Why?", *draw(PARTS))]
    for role in draw(st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=5)):
        parts: list[str | None] = list(draw(PARTS))
        calls: list[tuple[str, str]] = []
        if role == "assistant":
            if draw(st.booleans()):
                parts = ["<think>", *parts, "</think>", *draw(PARTS)]
            calls = [("f", arguments) for arguments in draw(st.lists(ARGUMENTS, max_size=2))]
        elif draw(st.booleans()):
            parts.insert(draw(st.integers(0, len(parts))), None)
        messages.append(turn(role, *parts, calls=calls))
    return messages


@given(conversations())
def test_any_conversation_is_written_alike(messages):
    content = {"tools": None, "messages": messages}
    assert text_of(qwen35.conversation(content, Loss())) == TEMPLATE.render(content, parsed=True)


def test_thoughts_and_answers_are_learned_with_what_ends_them():
    said = turn("assistant", "<think>\nA cell.\n</think>\n\nIt is a cell.")
    assert learned(turn("user", "What?"), said) == ("A cell.\n</think>\n\nIt is a cell.<|im_end|>")


def test_of_an_earlier_turn_the_answer_alone_is_learned():
    said = turn("assistant", "<think>\nA cell.\n</think>\n\nIt is a cell.")
    asked = turn("user", "What?")
    assert learned(asked, said, asked) == "It is a cell.<|im_end|>"


def test_not_to_think_is_not_learned():
    """The template opens and closes an empty thought itself where a model is not to think."""
    said = turn("assistant", "It is a cell.")
    assert learned(turn("user", "What?"), said) == "It is a cell.<|im_end|>"


def test_calls_are_learned_between_their_tags_or_not_at_all():
    said = turn("assistant", "Look.", calls=[("find", '{"who": "Ada", "all": true}')])
    asked = turn("user", "Who?")
    call = (
        "<tool_call>\n<function=find>\n<parameter=who>\nAda\n</parameter>\n"
        "<parameter=all>\nTrue\n</parameter>\n</function>\n</tool_call>"
    )
    assert learned(asked, said) == f"Look.\n\n{call}<|im_end|>"
    assert learned(asked, said, policy=Loss(tool_calls=False)) == "Look."
    assert not learned(asked, turn("assistant", "Look.", trained=False))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([turn("assistant", "Hello.")], "no question of the user"),
        ([turn("user", "<tool_response>x</tool_response>")], "no question of the user"),
        ([turn("user", "a"), turn("system", "b")], "system turn later than first"),
        ([turn("user", "a"), turn("assistant", "b<think>c</think>d")], "text before a thought"),
        ([turn("user", "a"), turn("assistant", "b</think>c</think>d")], "text before a thought"),
        ([turn("user", "a"), turn("assistant", "b", None)], "image in a turn of the assistant"),
        ([turn("system", None), turn("user", "a")], "image in a turn of the system"),
    ],
)
def test_what_the_template_refuses_or_leaves_out_is_a_reason(messages, reason):
    with pytest.raises(BadRow, match=reason):
        qwen35.conversation({"tools": None, "messages": messages}, Loss())
