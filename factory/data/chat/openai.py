"""Messages in OpenAI's form: `{"role": ..., "content": ..., "tool_calls": [...]}`.

Also its older form with `function_call` and the role `function`, and those of others who write
messages with roles and typed parts (LLaMA-Factory's reasoning sets). `weight`, 0 or 1, says
whether a turn is trained on. Fields that are not content (a timestamp, a token count) are not
read; a refusal or sound beside the content rejects the row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from factory.data.chat.calls import call
from factory.data.chat.contents import Contents, Reasoning
from factory.data.chat.turns import conversation
from factory.data.images import Images
from factory.data.kinds import Message, ToolCall
from factory.errors import BadRow

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def messages(
    record: Mapping[str, Any],
    field: str = "messages",
    *,
    roles: Mapping[str, str] | None = None,
    reasoning: Reasoning = "refuse",
    images: Images | None = None,
) -> list[Message]:
    """The messages of a record's field, verified.

    Args:
        record: the row.
        field: where its messages are.
        roles: other names for roles, `{"agent": "assistant"}`.
        reasoning: what becomes of a model's reasoning.
        images: the dataset's declaration about images, where there can be some.

    Raises:
        BadRow: this is no conversation, for a reason of `rules` or one of the form.
    """
    found = record.get(field)
    if not isinstance(found, list):
        raise BadRow("messages are not a list")
    reader = _Reader({**ROLES, **(roles or {})}, Contents(reasoning, images))
    return conversation([reader.turn(one) for one in cast("list[object]", found)])


@dataclass(frozen=True, slots=True)
class _Reader:
    roles: Mapping[str, str]
    contents: Contents

    def turn(self, value: object) -> Message:
        if not isinstance(value, Mapping):
            raise BadRow("a message is not an object")
        message = cast("Mapping[str, Any]", value)
        given = message.get("role")
        role = self.roles.get(given) if isinstance(given, str) else None
        if role is None:
            raise BadRow("unknown role")
        if message.get("refusal") or message.get("audio"):
            raise BadRow("a refusal or sound beside the content")
        if role == "tool" and message.get("content") is None:
            raise BadRow("tool result without content")
        spoken = self.contents.read(message.get("content"))
        thought = message.get("reasoning_content") or message.get("reasoning")
        thoughts = self.contents.thought(thought) if thought else []
        return Message.of(
            role,
            [*thoughts, *spoken.parts],
            [*spoken.calls, *_calls(message)],
            tool_call_id=_optional(message, "tool_call_id"),
            name=_optional(message, "name"),
            trained=trained(message.get("weight")),
        )


def trained(weight: object) -> bool | None:
    """What a turn's `weight` says about loss; nothing where there is none.

    Raises:
        BadRow: it is neither 0 nor 1.
    """
    if weight is None:
        return None
    if not isinstance(weight, int | float) or weight not in (0, 1):
        raise BadRow("weight is neither 0 nor 1")
    return bool(weight)


def _calls(message: Mapping[str, Any]) -> list[ToolCall]:
    listed: Any = message.get("tool_calls") or []
    if not isinstance(listed, list):
        raise BadRow("tool calls are not a list")
    calls = [_call(one) for one in cast("list[object]", listed)]
    older = message.get("function_call")
    return calls if older is None else [*calls, call(older)]


def _call(value: object) -> ToolCall:
    if not isinstance(value, Mapping):
        raise BadRow("tool call is not an object")
    fields = cast("Mapping[str, Any]", value)
    if fields.get("type", "function") != "function":
        raise BadRow("tool call of another type than function")
    return call(fields.get("function"), _optional(fields, "id") or "")


def _optional(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRow(f"{name} is not text")
    return value
