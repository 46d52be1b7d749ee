"""Tool calls and the declarations of tools, in the forms in which they are written.

Arguments stay the text that was written, where it was text: it is what a model has to write. It
must be a JSON object. Declarations all get the form `{"type": "function", "function": {...}}`, so
that whoever renders them meets one.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from factory.data.json_text import is_object
from factory.data.kinds import ToolCall
from factory.errors import BadRow


def call(value: object, call_id: str = "") -> ToolCall:
    """A call from `{"name": ..., "arguments": ...}`; arguments are an object or its JSON text.

    Raises:
        BadRow: it has no name, or its arguments are no JSON object.
    """
    if not isinstance(value, Mapping):
        raise BadRow("tool call is not an object")
    fields = cast("Mapping[str, Any]", value)
    name = fields.get("name")
    if not isinstance(name, str) or not name.strip():
        raise BadRow("tool call without a name")
    return ToolCall(call_id, name, _arguments(fields.get("arguments")))


def calls_in(text: object) -> tuple[ToolCall, ...]:
    """The calls in a JSON text: one object, or a list of them.

    Raises:
        BadRow: it is something else.
    """
    value = parsed(text, "tool call is not JSON")
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not values:
        raise BadRow("tool call is not an object")
    return tuple(call(one) for one in values)


def tools(record: Mapping[str, Any], field: str = "tools") -> str | None:
    """The functions that a record declares, as JSON text; none where the list is empty.

    Raises:
        BadRow: they are no list of functions with names.
    """
    value = record.get(field)
    if isinstance(value, str):
        value = parsed(value, "tools are not JSON") if value.strip() else None
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise BadRow("tools are not a list")
    return json.dumps(list(_functions(cast("list[Any]", value))), ensure_ascii=False)


def parsed(text: object, reason: str) -> Any:
    """The value of a JSON text.

    Raises:
        BadRow: it is none, for that reason.
    """
    if not isinstance(text, str):
        raise BadRow(reason)
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise BadRow(reason) from None


def _functions(values: list[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        if not isinstance(value, dict):
            raise BadRow("a tool is not an object")
        given = cast("dict[str, Any]", value)
        function = given.get("function", given)
        if given.get("type", "function") != "function" or not isinstance(function, dict):
            raise BadRow("a tool is not a function")
        name = cast("dict[str, Any]", function).get("name")
        if not isinstance(name, str) or not name.strip():
            raise BadRow("a tool without a name")
        yield given if "function" in given else {"type": "function", "function": given}


def _arguments(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not is_object(text):
        raise BadRow("tool call arguments are not a JSON object")
    return text


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
