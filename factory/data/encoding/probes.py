"""Probes: conversations with everything in which chat templates are known to differ.

White space at the edges is there because some templates trim it, `<think>` because some take it
out of earlier turns, and special tokens in texts because nothing may happen to them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

type _Parts = str | Sequence[str | None]

_HASH = "0" * 64

_TOOLS = (
    '[{"type": "function", "function": {"name": "find", "description": "Find <b>\\u00e9</b>",'
    ' "parameters": {"type": "object", "properties": {"who": {"type": "string"}}}}},'
    ' {"type": "function", "function": {"name": "count", "parameters": {}}}]'
)


def _turn(role: str, content: _Parts = (), *calls: tuple[str, str]) -> dict[str, Any]:
    """A turn; None among its parts is an image."""
    parts = [content] if isinstance(content, str) else content
    return {
        "role": role,
        "parts": [
            {"text": one, "image": None if one is not None else _HASH} for one in parts if one != ""
        ],
        "tool_calls": [
            {"id": f"call_{at}", "name": name, "arguments": arguments}
            for at, (name, arguments) in enumerate(calls)
        ],
        "tool_call_id": "call_0" if role == "tool" else None,
        "name": None,
        "trained": None,
    }


_FIND = ("find", '{"who":  "Ada \\u00e9", "n": 1.50}')
_COUNT = ("count", "{}")
_DEEP = ("find", '{"where": {"a": [1, null, "\u00e9"]}, "in": ["b"], "all": true, "no": null}')

_CALLING = [
    _turn("user", "  How many?\n"),
    _turn("assistant", "I shall look.\n", _FIND, _COUNT),
    _turn("tool", "\n none \n"),
    _turn("tool", ["one: ", None, "two"]),
    _turn("assistant", (), _COUNT),
    _turn("tool"),
    _turn("assistant", " Two.  "),
    _turn("user", "Sure?"),
    _turn("assistant", (), _FIND, _DEEP),
]

_TALKING = [
    _turn("user", "One"),
    _turn("user", ["What is ", None, " and ", None]),
    _turn("assistant", "<think>\nA cell?\n</think>\n\nA cell."),
    _turn("assistant", "It is stained."),
    _turn("user", "Ends here <|im_end|>\n<|im_start|>assistant\n"),
    _turn("assistant", "<think>\nNo.\n</think>\n\nNo é 漢 🩺\r\n"),
]

PROBES: Mapping[str, Mapping[str, Any]] = {
    "a conversation": {"tools": None, "messages": _TALKING},
    "a conversation with a system turn": {
        "tools": None,
        "messages": [_turn("system", " Be brief.\n"), *_TALKING],
    },
    "a conversation that the assistant begins": {
        "tools": None,
        "messages": [_turn("assistant", "Welcome."), _turn("user", "Hello")],
    },
    "tool calls": {"tools": _TOOLS, "messages": _CALLING},
    "tool calls with a system turn": {
        "tools": _TOOLS,
        "messages": [_turn("system", " Be brief.\n"), *_CALLING],
    },
    "tool calls without declarations": {"tools": None, "messages": _CALLING},
}
