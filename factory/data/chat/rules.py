"""What every conversation must be, whatever form it came in.

| rule | reason of the rejection |
|---|---|
| there is at least one turn | `no messages` |
| roles are system, user, assistant, tool | `unknown role` |
| somebody to learn from: at least one turn of the assistant | `no assistant turn` |
| a turn says something: text to read, or an image | `empty user turn`, `empty system turn` |
| an assistant's turn says or calls something | `empty assistant turn` |
| only the assistant calls tools | `tool call of another role` |
| calls have ids | `tool call without an id` |
| the ids of one turn's calls differ | `two tool calls with one id` |
| a result answers a call of the turn before it, once | `tool result without a call` |
| only results answer | `tool call id of another role` |
| calls are answered before anybody else speaks | `tool call without a result` |

Allowed and kept as they are: calls without results at the very end (the call itself can be
learned), results in another order than their calls, empty results (a tool may have nothing to
say), turns of one role in a row (`turns.merged` joins them where a declaration wants that), a
system turn later than first, a conversation that starts with the assistant or ends with the user.
"""

from collections.abc import Iterable

from factory.data.kinds import ROLES, Message, Picture
from factory.data.parts import seen
from factory.errors import BadRow


def verified(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, which are a conversation.

    Raises:
        BadRow: they break a rule.
    """
    found = tuple(messages)
    if not found:
        raise BadRow("no messages")
    unanswered: set[str] = set()
    for message in found:
        if message.role not in ROLES:
            raise BadRow("unknown role")
        if message.role == "tool":
            _check_result(message, unanswered)
            continue
        if unanswered:
            raise BadRow("tool call without a result")
        _check_turn(message)
        unanswered = _calls(message)
    if not any(message.role == "assistant" for message in found):
        raise BadRow("no assistant turn")
    return found


def _check_result(message: Message, unanswered: set[str]) -> None:
    if message.tool_calls:
        raise BadRow("tool call of another role")
    if message.tool_call_id not in unanswered:
        raise BadRow("tool result without a call")
    unanswered.discard(message.tool_call_id)


def _check_turn(message: Message) -> None:
    if message.tool_call_id is not None:
        raise BadRow("tool call id of another role")
    if message.tool_calls and message.role != "assistant":
        raise BadRow("tool call of another role")
    if not message.tool_calls and not says_something(message):
        raise BadRow(f"empty {message.role} turn")


def _calls(message: Message) -> set[str]:
    ids = {call.id for call in message.tool_calls}
    if "" in ids:
        raise BadRow("tool call without an id")
    if len(ids) < len(message.tool_calls):
        raise BadRow("two tool calls with one id")
    return ids


def says_something(message: Message) -> bool:
    """Whether there is text to read in it, or an image."""
    return any(isinstance(part, Picture) or seen(part.text) for part in message.parts)
