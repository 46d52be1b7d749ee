"""Calls between tags in the assistant's text, as Hermes and its kin write them.

`<tool_call>{"name": ..., "arguments": ...}</tool_call>` becomes a call of its turn, each
`<tool_response>...</tool_response>` of a result's turn a result. What stands around the tags stays
as the turn's text; a result has nothing around them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from factory.data.chat.calls import calls_in
from factory.data.kinds import Message
from factory.data.parts import parts_of, seen
from factory.errors import BadRow

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)


def read(turns: Iterable[Message]) -> Iterator[Message]:
    """The turns with calls and results as such.

    Raises:
        BadRow: a tag is open, or there is text beside a result.
    """
    for turn in turns:
        if turn.role == "assistant":
            yield _called(turn)
        elif turn.role == "tool":
            yield from _answered(turn)
        else:
            yield turn


def _called(turn: Message) -> Message:
    calls = [call for found in _CALL.findall(turn.text) for call in calls_in(found)]
    if not calls:
        _refuse_open(turn.text)
        return turn
    rest = _CALL.sub("", turn.text)
    _refuse_open(rest)
    said = rest if seen(rest) else ""
    return replace(turn, parts=parts_of(said), tool_calls=(*turn.tool_calls, *calls))


def _answered(turn: Message) -> Iterator[Message]:
    results = _RESULT.findall(turn.text)
    if not results:
        yield turn
        return
    if seen(_RESULT.sub("", turn.text)):
        raise BadRow("text beside a tool response")
    for result in results:
        yield replace(turn, parts=parts_of(result.strip()))


def _refuse_open(text: str) -> None:
    if "<tool_call>" in text or "</tool_call>" in text:
        raise BadRow("a tool call without its other tag")
