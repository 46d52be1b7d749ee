"""Previews: some rows of a version as markdown, for public datasets only.

Who may be shown them is decided by the callers, `metadata` and the command `factory card`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from factory.control import markdown
from factory.control.pictures import thumbnails
from factory.data import layout
from factory.data.kinds import Conversation, ImageText, Message, Part, Text, ToolCall
from factory.data.sample import Sample
from factory.data.steps import Step
from factory.units import size

if TYPE_CHECKING:
    from factory.keys import Key
    from factory.namespace import Version

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 240
ID_CHARACTERS = 40

TALKS = 2
"""Conversations, or pages with images, that are shown whole: they are long."""

PICTURES = 3
"""Images of a sample that are shown; of the others there is the name."""

MESSAGES = 10
MESSAGE_CHARACTERS = 600
TOOL_CHARACTERS = 300


def preview(step: Step, version: "Version", inputs: "Mapping[Key, Version]") -> str:
    """The first files or samples of a version."""
    if step.kind == "raw":
        files = islice(version.manifest.files.items(), PREVIEW_ROWS)
        rows = ((_cell(name), size(entry.size)) for name, entry in files)
        return markdown.table(("file", "size"), rows)
    match step.kind:
        case "split":
            return samples_of(version, layout.split_table(next(iter(step.dataset.split))))
        case "energon":
            return samples_of(inputs[step.inputs[0]], layout.split_table(step.split))
        case _:
            return samples_of(version)


def samples_of(version: "Version", name: str = layout.SAMPLES, *, pictures: bool = True) -> str:
    """The first samples of one of a version's tables."""
    from factory.data import table

    samples = list(islice(table.samples(version.path / name), PREVIEW_ROWS))
    named = {one.image for sample in samples for one in sample.pictures[:PICTURES]}
    shown = thumbnails(version.path / layout.IMAGES, named) if pictures else {}
    return _rendered(samples, shown)


def _rendered(samples: Iterable[Sample], shown: Mapping[str, str]) -> str:
    """Samples as a person would read them: texts in a table, what has turns or images in full."""
    flat: list[tuple[str, str]] = []
    whole: list[str] = []
    for sample in samples:
        if isinstance(sample.content, Conversation | ImageText):
            whole.append(f"**{_name(sample.id)}**\n\n{_whole(sample.content, shown)}")
        else:
            flat.append((_name(sample.id), _cell(_text(sample))))
    tables = [markdown.table(("id", "text"), flat)] if flat else []
    return "\n\n---\n\n".join(tables + whole[:TALKS])


def removed_pairs(step: Step, version: "Version", inputs: "Mapping[Key, Version]") -> str:
    """Some removed samples beside the ones that they are like, as a markdown table."""
    from factory.data import deduplicate, table

    pairs = deduplicate.examples(version.path / layout.REMOVED, PREVIEW_ROWS)
    wanted = {pair[name] for pair in pairs for name in ("id", "kept")}
    samples = table.chosen(inputs[step.inputs[0]].path / layout.SAMPLES, wanted)
    texts = {name: _cell(f"{name}: {_text(sample)}") for name, sample in samples.items()}
    return markdown.table(
        ("similarity", "removed", "kept"),
        ((f"{one['similarity']:.3f}", texts[one["id"]], texts[one["kept"]]) for one in pairs),
    )


def _whole(content: Conversation | ImageText, shown: Mapping[str, str]) -> str:
    if isinstance(content, ImageText):
        return _parts(content.parts, MESSAGE_CHARACTERS, shown)
    blocks = [_message(one, shown) for one in content.messages[:MESSAGES]]
    left = len(content.messages) - MESSAGES
    names = ", ".join(_functions(content.tools or "[]"))
    if names:
        blocks.insert(0, f"*may call* {names}")
    if left > 0:
        blocks.append(f"*and {left:,} more messages*")
    return "\n\n".join(blocks)


def _message(message: Message, shown: Mapping[str, str]) -> str:
    name = f" {markdown.code(message.name, PREVIEW_CHARACTERS)}" if message.name else ""
    loss = ", with loss" if message.trained else ""
    limit = TOOL_CHARACTERS if message.role == "tool" else MESSAGE_CHARACTERS
    blocks = [f"**{markdown.escaped(message.role)}**{name}{loss}"]
    if message.parts:
        blocks.append(_parts(message.parts, limit, shown))
    blocks += [f"> → {_call(one)}" for one in message.tool_calls]
    return "\n\n".join(blocks)


def _call(call: ToolCall) -> str:
    return markdown.code(f"{call.name}({call.arguments})", TOOL_CHARACTERS)


def _parts(parts: Iterable[Part], characters: int, shown: Mapping[str, str]) -> str:
    return "\n>\n".join(
        markdown.quote(part.text, characters)
        if isinstance(part, Text)
        else f"> {shown.get(part.image, f'`image {part.image[:12]}`')}"
        for part in parts
    )


def _functions(tools: str) -> Iterator[str]:
    """Names of the functions declared; whatever else a source writes there is shown as it is."""
    try:
        declared: Any = json.loads(tools)
    except ValueError:
        declared = None
    for one in declared if isinstance(declared, list) else [declared]:
        try:
            name = f"{one.get('function', one)['name']}"
        except (AttributeError, KeyError, TypeError):
            name = tools
        yield markdown.code(name, PREVIEW_CHARACTERS)


def _text(sample: Sample) -> str:
    """The beginning of a sample as a person would read it."""
    return " / ".join(islice(filter(None, sample.content.texts), 6))


def _name(text: str) -> str:
    """The end of a long id, which tells it from its neighbours."""
    return markdown.escaped(text if len(text) <= ID_CHARACTERS else f"…{text[-ID_CHARACTERS:]}")


def _cell(text: str) -> str:
    return markdown.cell(text, PREVIEW_CHARACTERS)
