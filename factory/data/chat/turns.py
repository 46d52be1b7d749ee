"""From turns as they were written to a conversation: which result answers which call.

Forms without ids pair calls and results by their order. Forms that write several results into one
turn, as a JSON list that names the functions called, get a turn for each.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, cast

from factory.data.chat.rules import verified
from factory.data.kinds import Message, Text, ToolCall
from factory.data.parts import Part
from factory.errors import BadRow

BETWEEN = "\n\n"
"""What joins the texts of two turns."""


def conversation(turns: Sequence[Message]) -> list[Message]:
    """The turns with ids where calls had none, verified.

    Raises:
        BadRow: they are no conversation, see `rules`.
    """
    return list(verified(_numbered(_separated(turns))))


def merged(messages: Iterable[Message]) -> list[Message]:
    """Turns of one role in a row as one turn, an empty line between their texts.

    Results stay apart, each answers its own call, and so does what a turn has in itself that
    another cannot share: calls in the earlier one, another name, another say about loss.
    """
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        if last is not None and _joins(last, message):
            parts = _joined(last.parts, message.parts)
            found[-1] = replace(last, parts=parts, tool_calls=message.tool_calls)
        else:
            found.append(message)
    return found


def _joins(last: Message, message: Message) -> bool:
    alike = (last.role, last.name, last.trained) == (message.role, message.name, message.trained)
    return alike and message.role != "tool" and not last.tool_calls


def _joined(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    if first and second and isinstance(first[-1], Text) and isinstance(second[0], Text):
        text = Text(f"{first[-1].text}{BETWEEN}{second[0].text}")
        return (*first[:-1], text, *second[1:])
    return first + second


def _numbered(turns: Iterable[Message]) -> Iterator[Message]:
    """Calls get ids where they have none, and results without one answer in order."""
    count = 0
    open_calls: list[ToolCall] = []
    for turn in turns:
        if turn.role == "tool":
            yield _answer(turn, open_calls)
            continue
        calls: list[ToolCall] = []
        for call in turn.tool_calls:
            count += 1
            calls.append(call if call.id else replace(call, id=f"call_{count}"))
        open_calls = calls.copy()
        yield replace(turn, tool_calls=tuple(calls)) if calls else turn


def _answer(turn: Message, open_calls: list[ToolCall]) -> Message:
    wanted = turn.tool_call_id
    found = next((one for one in open_calls if wanted in (None, one.id)), None)
    if found is None:
        raise BadRow("tool result without a call")
    open_calls.remove(found)
    return replace(turn, tool_call_id=found.id, name=turn.name or found.name)


def _separated(turns: Sequence[Message]) -> list[Message]:
    """One result for several calls becomes one for each, if it says which is whose."""
    found: list[Message] = []
    for turn, after in zip_longest(turns, turns[1:]):
        calls = found[-1].tool_calls if found else ()
        alone = turn.role == "tool" and (after is None or after.role != "tool")
        items = _items(turn, calls) if alone and len(calls) > 1 else None
        if items is None:
            found.append(turn)
            continue
        ids = [_id(item) for item in items]
        numbered = (replace(call, id=one) for call, one in zip(calls, ids, strict=True))
        found[-1] = replace(found[-1], tool_calls=tuple(numbered))
        found += (
            Message.of("tool", _text(item["content"]), tool_call_id=one or None, name=item["name"])
            for item, one in zip(items, ids, strict=True)
        )
    return found


def _items(turn: Message, calls: Sequence[ToolCall]) -> list[Mapping[str, Any]] | None:
    """The results in a turn, if they are named after these calls, in their order."""
    if turn.tool_call_id is not None or any(call.id for call in calls):
        return None
    try:
        value: Any = json.loads(turn.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or not all(map(_is_result, cast("list[Any]", value))):
        return None
    items = cast("list[Mapping[str, Any]]", value)
    return items if [one["name"] for one in items] == [call.name for call in calls] else None


def _is_result(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    return {"name", "content"} <= set(cast("dict[str, Any]", item)) <= _RESULT


_RESULT = frozenset({"tool_call_id", "name", "content"})


def _id(item: Mapping[str, Any]) -> str:
    given = item.get("tool_call_id")
    return given if isinstance(given, str) else ""


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
