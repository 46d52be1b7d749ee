"""Turns in ShareGPT's form: `{"conversations": [{"from": "human", "value": "..."}]}`.

Its variants for calling functions write a call as a turn of its own, whose value is the JSON text
of the call or of a list of calls, and the result as the next turn. A call may follow what the
assistant says: both turns are kept. Ids there are none: results answer in order. `weight` says
whether a turn is trained on, as in `openai`.

Hermes and its kin write calls as `<tool_call>` inside the assistant's text; see `tagged`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from factory.data.chat import tagged
from factory.data.chat.calls import calls_in
from factory.data.chat.openai import trained
from factory.data.chat.turns import conversation
from factory.data.images import Image
from factory.data.kinds import Message
from factory.data.parts import parts_of
from factory.errors import BadRow

CALL = "call"

ROLES: Mapping[str, str] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "function_call": CALL,
    "tool_call": CALL,
    "observation": "tool",
    "tool": "tool",
    "tool_response": "tool",
    "function_response": "tool",
}

BESIDE = ("images", "videos", "audios")
"""Fields that list files which belong to the turns."""

PLACE = "<image>"
"""Where an image belongs in a text, in sets whose images are files."""


def messages(
    record: Mapping[str, Any],
    field: str = "conversations",
    *,
    roles: Mapping[str, str] | None = None,
    tags: bool = False,
    images: Sequence[Image] = (),
) -> list[Message]:
    """The messages of a record's field, verified, after the record's own `system` if it has one.

    Args:
        record: the row.
        field: where its turns are.
        roles: other names for roles, `{"bot": "assistant"}`.
        tags: whether calls and results lie between tags in the text, see `tagged`.
        images: those that belong in the places `<image>`, in order.

    Raises:
        BadRow: this is no conversation, for a reason of `rules` or one of the form.
    """
    found = record.get(field)
    if not isinstance(found, list):
        raise BadRow("turns are not a list")
    known = {**ROLES, **(roles or {})}
    turns = [_turn(one, known) for one in cast("list[object]", found)]
    if record.get("system"):
        turns.insert(0, Message.of("system", _text(record["system"])))
    if tags:
        turns = list(tagged.read(turns))
    return conversation(list(_placed(turns, record, images)))


def _turn(value: object, roles: Mapping[str, str]) -> Message:
    if not isinstance(value, Mapping):
        raise BadRow("a turn is not an object")
    turn = cast("Mapping[str, Any]", value)
    given = turn.get("from")
    role = roles.get(given) if isinstance(given, str) else None
    if role is None:
        raise BadRow("unknown role")
    carries = trained(turn.get("weight"))
    if role == "tool" and turn.get("value") is None:
        raise BadRow("tool result without content")
    if role == CALL:
        return Message.of("assistant", (), calls_in(turn.get("value")), trained=carries)
    return Message.of(role, _text(turn.get("value")), trained=carries)


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRow("a turn's value is not text")
    return value


def _placed(
    turns: Sequence[Message], record: Mapping[str, Any], images: Sequence[Image]
) -> Iterator[Message]:
    """The turns with the images in their places; those of the record must all be given."""
    if sum(map(_count, map(record.get, BESIDE))) > len(images):
        raise BadRow("images, video or sound beside the turns")
    if not images:
        yield from turns
        return
    left = list(images)
    for turn in turns:
        first, *rest = turn.text.split(PLACE)
        if len(rest) > len(left):
            raise BadRow("more places for images than images")
        parts: list[str | Image] = [first]
        for text in rest:
            parts += [left.pop(0), text]
        yield replace(turn, parts=parts_of(parts))
    if left:
        raise BadRow("more images than places for them")


def _count(listed: object) -> int:
    if isinstance(listed, list):
        return len(cast("list[object]", listed))
    return 1 if listed else 0
