"""Qwen: conversations as the chat templates of Qwen3-VL write them, of which every part is known.

Jinja gives a text and no more. This writes the same text in runs, so that loss falls on what a
trained turn says and calls and on the token that ends it, and on nothing else. `template` holds
both against each other before a tokenizer's template is trusted to be this one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factory.data.encoding.plain import is_trained
from factory.data.encoding.runs import Run, runs_of, said
from factory.data.loss import Loss
from factory.errors import BadRow

START, END = "<|im_start|>", "<|im_end|>"
IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"

_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""

_HOW_TO_CALL = """
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def conversation(content: Mapping[str, Any], policy: Loss) -> list[Run]:
    """The turns, each from its start token to the line end behind its end token.

    Raises:
        BadRow: the template would leave out a turn or an image without a word.
    """
    messages: Sequence[Mapping[str, Any]] = content["messages"]
    tools: list[Any] = json.loads(content["tools"]) if content["tools"] else []
    system = [messages[0]] if messages and messages[0]["role"] == "system" else []
    runs = list(_opening(system, tools, policy))
    for at, message in enumerate(messages[len(system) :], start=len(system)):
        match message["role"]:
            case "user":
                runs += _turn(message, policy)
            case "assistant":
                runs += _assistant(message, policy)
            case "tool":
                runs += _result(messages, at, policy)
            case role:
                raise BadRow(f"{role} turn later than first, which the chat template leaves out")
    return runs


def _opening(
    system: Sequence[Mapping[str, Any]], tools: Sequence[Any], policy: Loss
) -> Iterator[Run]:
    """The system turn; functions are declared in it, whether or not it says anything else."""
    if not tools:
        for message in system:
            yield from _turn({**message, "parts": _texts(message)}, policy)
        return
    yield Run("markup", f"{START}system\n", opens=True)
    for message in system:
        yield from runs_of(_texts(message), is_trained(message, policy), IMAGE)
        yield Run("markup", "\n\n")
    yield Run("markup", _TOOLS)
    yield Run("data", "".join(f"\n{json.dumps(one, ensure_ascii=False)}" for one in tools))
    yield Run("markup", f"{_HOW_TO_CALL}{END}\n")


def _turn(message: Mapping[str, Any], policy: Loss) -> Iterator[Run]:
    loss = is_trained(message, policy)
    yield Run("markup", f"{START}{message['role']}\n", opens=True)
    yield from runs_of(message["parts"], loss, IMAGE)
    yield from _end(loss)


def _assistant(message: Mapping[str, Any], policy: Loss) -> Iterator[Run]:
    loss = is_trained(message, policy)
    calls: Sequence[Mapping[str, str]] = message["tool_calls"]
    calls_loss = loss and policy.tool_calls
    yield Run("markup", f"{START}assistant\n", opens=True)
    yield from runs_of(_texts(message), loss, IMAGE)
    gap = "\n" if said(message["parts"]) else ""
    for call in calls:
        # What is around the name is the template's, but here it is the model that writes it.
        yield Run("markup", f'{gap}<tool_call>\n{{"name": "', calls_loss)
        yield Run("data", call["name"], calls_loss)
        yield Run("markup", '", "arguments": ', calls_loss)
        yield Run("data", call["arguments"], calls_loss)
        yield Run("markup", "}\n</tool_call>", calls_loss)
        gap = "\n"
    yield from _end(calls_loss if calls else loss)


def _result(messages: Sequence[Mapping[str, Any]], at: int, policy: Loss) -> Iterator[Run]:
    """A result; those that follow each other share one turn of the user."""
    loss = is_trained(messages[at], policy)
    if at == 0 or messages[at - 1]["role"] != "tool":
        yield Run("markup", f"{START}user", opens=True)
    yield Run("markup", "\n<tool_response>\n")
    yield from runs_of(messages[at]["parts"], loss, IMAGE)
    yield Run("markup", "\n</tool_response>")
    if at + 1 == len(messages) or messages[at + 1]["role"] != "tool":
        yield from _end(False)


def _end(loss: bool) -> Iterator[Run]:
    yield Run("markup", END, loss)
    yield Run("markup", "\n")


def _texts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The parts of a turn in which the template only looks for text."""
    parts: Sequence[Mapping[str, Any]] = message["parts"]
    if any(part["image"] is not None for part in parts):
        raise BadRow(
            f"image in a turn of the {message['role']}, which the chat template leaves out"
        )
    return parts
