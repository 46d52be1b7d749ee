"""Qwen3.5: conversations as the chat template of Qwen3.5 writes them, of which every part is known.

Calls are written parameter by parameter between tags. White space at the edges of a turn is taken
off. What the assistant thinks is written for the turns behind the last question only: of earlier
turns the model sees the answers alone. Such a turn begins with a `<think>` that the template opens;
what is thought, the end of it, and the answer are the model's.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from factory.data.encoding.plain import is_trained
from factory.data.encoding.qwen import END, IMAGE, START
from factory.data.encoding.runs import Run, runs_of
from factory.data.loss import Loss
from factory.errors import BadRow

THINK, THOUGHT = "<think>", "</think>"
RESPONSE, RESPONDED = "<tool_response>", "</tool_response>"

_TOOLS = """# Tools

You have access to the following functions:

<tools>"""

_HOW_TO_CALL = """
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must \
be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the \
function call, but NOT after
- If there is no function call available, answer the question like normal with your current \
knowledge and do not tell the user about function calls
</IMPORTANT>"""

type Parts = Sequence[Mapping[str, Any]]


class _Spoken(NamedTuple):
    """A turn of the assistant, in two."""

    thought: str
    answer: str


def conversation(content: Mapping[str, Any], policy: Loss) -> list[Run]:
    """The turns, each from its start token to the line end behind its end token.

    Raises:
        BadRow: the template would refuse the turns, or leave something out of them.
    """
    messages: Sequence[Mapping[str, Any]] = content["messages"]
    tools: list[Any] = json.loads(content["tools"]) if content["tools"] else []
    system = [messages[0]] if messages and messages[0]["role"] == "system" else []
    question = _last_question(messages)
    runs = list(_opening(system, tools, policy))
    for at, message in enumerate(messages[len(system) :], start=len(system)):
        match message["role"]:
            case "user":
                loss = is_trained(message, policy)
                runs.append(Run("markup", f"{START}user\n", opens=True))
                runs += runs_of(_stripped(message["parts"]), loss, IMAGE)
                runs += _end(loss)
            case "assistant":
                runs += _assistant(message, policy, thinks=at > question)
            case "tool":
                runs += _result(messages, at, policy)
            case role:
                raise BadRow(f"{role} turn later than first, which the chat template refuses")
    return runs


def _last_question(messages: Sequence[Mapping[str, Any]]) -> int:
    """The last turn of the user that is no result in disguise."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            text = "".join(
                IMAGE if one["text"] is None else one["text"]
                for one in _stripped(messages[at]["parts"])
            )
            if not (text.startswith(RESPONSE) and text.endswith(RESPONDED)):
                return at
    raise BadRow("no question of the user, which the chat template refuses")


def _opening(
    system: Sequence[Mapping[str, Any]], tools: Sequence[Any], policy: Loss
) -> Iterator[Run]:
    """The system turn: the functions, then what it says."""
    if not system and not tools:
        return
    yield Run("markup", f"{START}system\n", opens=True)
    if tools:
        yield Run("markup", _TOOLS)
        yield Run("data", "".join(f"\n{json.dumps(one, ensure_ascii=False)}" for one in tools))
        yield Run("markup", _HOW_TO_CALL)
    for message in system:
        loss = is_trained(message, policy)
        parts = _stripped(_texts(message))
        if tools and parts:
            yield Run("markup", "\n\n")
        yield from runs_of(parts, loss, IMAGE)
        yield from _end(loss and not tools)
    if not system:
        yield from _end(False)


def _assistant(message: Mapping[str, Any], policy: Loss, *, thinks: bool) -> Iterator[Run]:
    loss = is_trained(message, policy)
    spoken = _spoken("".join(part["text"] for part in _stripped(_texts(message))))
    yield Run("markup", f"{START}assistant\n", opens=True)
    if thinks:
        # Where nothing was thought, the whole block is the template's: it stands for "do not".
        thought = loss and bool(spoken.thought)
        yield Run("markup", f"{THINK}\n")
        yield Run("content", spoken.thought, thought)
        yield Run("markup", f"\n{THOUGHT}\n\n", thought)
    yield Run("content", spoken.answer, loss)
    calls: Sequence[Mapping[str, str]] = message["tool_calls"]
    calls_loss = loss and policy.tool_calls
    gap = "\n\n" if spoken.answer.strip() else ""
    for call in calls:
        yield from _call(call, gap, calls_loss)
        gap = "\n"
    yield from _end(calls_loss if calls else loss)


def _call(call: Mapping[str, str], gap: str, loss: bool) -> Iterator[Run]:
    """What is around names and values is the template's, but here the model writes it."""
    yield Run("markup", f"{gap}<tool_call>\n<function=", loss)
    yield Run("data", call["name"], loss)
    yield Run("markup", ">\n", loss)
    arguments: Mapping[str, Any] = json.loads(call["arguments"])
    for name, value in arguments.items():
        yield Run("markup", "<parameter=", loss)
        yield Run("data", name, loss)
        yield Run("markup", ">\n", loss)
        yield Run("data", _value(value), loss)
        yield Run("markup", "\n</parameter>\n", loss)
    yield Run("markup", "</function>\n</tool_call>", loss)


def _value(value: Any) -> str:
    """Lists and objects as JSON, all else as Python writes it: `True`, `None`."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _result(messages: Sequence[Mapping[str, Any]], at: int, policy: Loss) -> Iterator[Run]:
    """A result; those that follow each other share one turn of the user."""
    loss = is_trained(messages[at], policy)
    if at and messages[at - 1]["role"] != "tool":
        yield Run("markup", f"{START}user", opens=True)
    yield Run("markup", f"\n{RESPONSE}\n")
    yield from runs_of(_stripped(messages[at]["parts"]), loss, IMAGE)
    yield Run("markup", f"\n{RESPONDED}")
    if at + 1 == len(messages) or messages[at + 1]["role"] != "tool":
        yield from _end(False)


def _end(loss: bool) -> Iterator[Run]:
    yield Run("markup", END, loss)
    yield Run("markup", "\n")


def _spoken(text: str) -> _Spoken:
    """What was thought and what was answered.

    Raises:
        BadRow: there is something else, which the template would leave out without a word.
    """
    if THOUGHT not in text:
        return _Spoken("", text)
    thought, *between, answer = text.split(THOUGHT)
    before, _, thought = thought.rpartition(THINK)
    if between or before.strip():
        raise BadRow("text before a thought, which the chat template leaves out")
    return _Spoken(thought.strip(), answer.lstrip("\n"))


def _stripped(parts: Parts) -> Parts:
    """The parts without white space at the edges; an image is none."""
    kept = [part for part in parts if part["image"] is not None or part["text"]]
    while kept and kept[0]["image"] is None:
        text = kept[0]["text"].lstrip()
        kept[:1] = [{**kept[0], "text": text}] if text else []
        if text:
            break
    while kept and kept[-1]["image"] is None:
        text = kept[-1]["text"].rstrip()
        kept[-1:] = [{**kept[-1], "text": text}] if text else []
        if text:
            break
    return kept


def _texts(message: Mapping[str, Any]) -> Parts:
    parts: Parts = message["parts"]
    if any(part["image"] is not None for part in parts):
        raise BadRow(f"image in a turn of the {message['role']}, where no image is learned")
    return parts
