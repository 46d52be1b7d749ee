"""The page on samples says what is so."""

import json
import re

import pytest

from factory.data import Loss, Row
from factory.data.chat import openai, sharegpt
from factory.data.chat.rules import verified
from factory.data.sample import Sample
from factory.errors import BadRow
from tests.conftest import CHECKOUT
from tests.data import kinds

PAGE = (CHECKOUT / "docs" / "samples.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_python_runs():
    names = {"image": kinds.image()}
    for block in blocks("python"):
        exec(block, names)  # noqa: S102  our own page
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    clean = names["clean"]
    assert clean(Row("a.jsonl", 1, json={"messages": turns})).kind == "conversation"  # type: ignore[operator]


def test_its_defaults_are_those_of_the_policy():
    names: dict[str, object] = {}
    block = next(one for one in blocks("python") if "Loss(" in one)
    exec(block.replace("\nLoss(", "\nfound = Loss("), names)  # noqa: S102  our own page
    assert names["found"] == Loss()


def test_its_json_is_a_sample():
    value = json.loads(blocks("json")[0])
    assert Sample.from_dict(value).as_dict() == value


@pytest.mark.parametrize(
    ("reason", "turns"),
    [
        ("empty user turn", [{"role": "user", "content": None}]),
        ("empty system turn", [{"role": "system", "content": ""}]),
        ("empty assistant turn", [{"role": "assistant", "content": None}]),
        ("tool result without content", [{"role": "tool"}]),
        ("tool result without a call", [{"role": "tool", "content": "x"}]),
        ("no assistant turn", [{"role": "user", "content": "x"}]),
        ("no messages", []),
        ("unknown role", [{"role": "critic"}]),
        ("reasoning in a turn", [{"role": "assistant", "reasoning_content": "Hm."}]),
        (
            "image outside the row",
            [{"role": "user", "content": [{"type": "image_url", "image_url": "a.png"}]}],
        ),
        (
            "tool call arguments are not a JSON object",
            [{"role": "assistant", "function_call": {"name": "f", "arguments": "{"}}],
        ),
    ],
)
def test_its_reasons_are_those_of_the_code(reason: str, turns: list[object]):
    assert f"`{reason}`" in PAGE
    with pytest.raises(BadRow) as caught:
        openai.messages({"messages": turns})
    assert caught.value.reason == reason


def test_a_call_without_a_result():
    call = {"from": "function_call", "value": '{"name": "f", "arguments": {}}'}
    turns = [call, {"from": "gpt", "value": "x"}]
    assert "`tool call without a result`" in PAGE
    with pytest.raises(BadRow, match="tool call without a result"):
        sharegpt.messages({"conversations": turns})
    assert verified(sharegpt.messages({"conversations": turns[:1]}))
