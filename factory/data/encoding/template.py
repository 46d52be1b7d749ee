"""`ChatTemplate`: a model's own Jinja template, and whether one of our renderings writes the same.

Jinja says what the text is, but not which part of it is whose; a rendering of ours knows that.
Before a rendering is used for a tokenizer, both write a set of conversations that hold everything
that a conversation can (`probes`), and every character must agree.
"""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from factory.data.encoding import qwen, qwen35
from factory.data.encoding.probes import PROBES
from factory.data.encoding.runs import Run, text_of
from factory.data.loss import Loss
from factory.errors import SpecError

if TYPE_CHECKING:
    from jinja2 import Template

type Rendering = Callable[[Mapping[str, Any], Loss], list[Run]]

RENDERINGS: Mapping[str, Rendering] = {
    "qwen": qwen.conversation,
    "qwen35": qwen35.conversation,
}

PARSED = frozenset({"qwen35"})
"""Renderings of templates that take the arguments of calls as objects, not as text."""

_CONTEXT = 30


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Jinja source, and the special tokens that it may name."""

    source: str
    origin: str
    """Where the source was found, for messages."""

    tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    """`bos_token`, `eos_token` and the like."""

    def render(
        self, conversation: Mapping[str, Any], *, prompt: bool = False, parsed: bool = False
    ) -> str:
        """The text of a conversation.

        Args:
            conversation: in its canonical form.
            prompt: open the turn that is to be written next.
            parsed: give the arguments of calls as objects.
        """
        tools = json.loads(conversation["tools"]) if conversation["tools"] else None
        return _compiled(self.source).render(
            messages=messages_of(conversation["messages"], parsed=parsed),
            tools=tools,
            documents=None,
            add_generation_prompt=prompt,
            **self.tokens,
        )

    def rendering(self) -> tuple[str, Rendering]:
        """The rendering of ours that writes what the template writes, with its name.

        Raises:
            SpecError: there is none.
        """
        found: dict[str, str] = {}
        for name, rendering in RENDERINGS.items():
            difference = self._difference(rendering, parsed=name in PARSED)
            if difference is None:
                return name, rendering
            found[name] = difference
        raise SpecError(
            f"The chat template in {self.origin} is none that loss can be placed in: "
            + "; ".join(f"as {name} it differs {what}" for name, what in found.items())
            + ". Add a rendering of it to factory/data/encoding, or use chat='plain'."
        )

    def _difference(self, rendering: Rendering, *, parsed: bool) -> str | None:
        for name, probe in PROBES.items():
            try:
                theirs = self.render(probe, parsed=parsed)
            except Exception as error:
                return f"in {name}, which it refuses: {error}"
            ours = text_of(rendering(probe, Loss()))
            if ours != theirs:
                return f"in {name}, {_first_difference(theirs, ours)}"
        return None


def messages_of(
    messages: Iterable[Mapping[str, Any]], *, parsed: bool = False
) -> list[dict[str, Any]]:
    """Messages as chat templates expect them; `parsed`: with arguments of calls as objects."""
    return [_message(one, parsed) for one in messages]


def _message(message: Mapping[str, Any], parsed: bool) -> dict[str, Any]:
    parts = message["parts"]
    content: str | list[dict[str, str]] = "".join(part["text"] or "" for part in parts)
    if any(part["image"] is not None for part in parts):
        content = [
            {"type": "text", "text": part["text"]}
            if part["image"] is None
            else {"type": "image", "image": part["image"]}
            for part in parts
        ]
    made: dict[str, Any] = {"role": message["role"], "content": content}
    if message["tool_calls"]:
        made["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.loads(call["arguments"]) if parsed else call["arguments"],
                },
            }
            for call in message["tool_calls"]
        ]
    optional = {name: message[name] for name in ("tool_call_id", "name")}
    return made | {name: value for name, value in optional.items() if value is not None}


@functools.cache
def _compiled(source: str) -> "Template":
    """The template as transformers compiles it; its package is not needed for it."""
    from jinja2 import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.nodes import Node
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks what the assistant writes, and writes nothing itself."""

        tags = {"generation"}  # noqa: RUF012  as Jinja declares it

        def parse(self, parser: Parser) -> list[Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    return environment.from_string(source, globals={"raise_exception": raise_exception})


def _first_difference(theirs: str, ours: str) -> str:
    equal = 0
    while equal < min(len(theirs), len(ours)) and theirs[equal] == ours[equal]:
        equal += 1
    shown = slice(max(0, equal - _CONTEXT), equal + _CONTEXT)
    return f"where it writes {theirs[shown]!r}, not {ours[shown]!r}"
