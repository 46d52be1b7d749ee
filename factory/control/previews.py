"""Previews: some rows of a version as markdown, for public datasets only.

Who may be shown them is decided in `metadata`, which is the only caller.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from factory.data import layout
from factory.data.steps import Step
from factory.units import size

if TYPE_CHECKING:
    from factory.keys import Key
    from factory.namespace import Version

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 240
LENGTHS = 100_000
"""Samples that the histogram of lengths counts: more would not change its shape."""


def lengths(step: Step, version: "Version") -> list[int]:
    """Characters of each sample of `clean`, of the first hundred thousand."""
    if step.kind != "clean":
        return []
    from factory.data import table

    rows = islice(table.samples(version.path / layout.SAMPLES), LENGTHS)
    return [row.characters for row in rows]


def preview(step: Step, version: "Version", inputs: "Mapping[Key, Version]") -> str:
    """The first files or samples of a version, as a markdown table."""
    if step.kind == "raw":
        files = islice(version.manifest.files.items(), PREVIEW_ROWS)
        return _table(("file", "size"), ((name, size(entry.size)) for name, entry in files))
    from factory.data import table

    match step.kind:
        case "split":
            file = version.path / layout.split_table(next(iter(step.dataset.split)))
        case "energon":
            file = inputs[step.inputs[0]].path / layout.split_table(step.split)
        case _:
            file = version.path / layout.SAMPLES
    rows = islice(table.samples(file), PREVIEW_ROWS)
    return _table(("id", "text"), ((row.id, _text(row.as_dict())) for row in rows))


def removed_pairs(step: Step, version: "Version", inputs: "Mapping[Key, Version]") -> str:
    """Some removed samples beside the ones that they are like, as a markdown table."""
    from factory.data import deduplicate, table

    pairs = deduplicate.examples(version.path / layout.REMOVED, PREVIEW_ROWS)
    wanted = {pair[name] for pair in pairs for name in ("id", "kept")}
    samples = table.chosen(inputs[step.inputs[0]].path / layout.SAMPLES, wanted)
    texts = {name: f"{name}: {_text(sample.as_dict())}" for name, sample in samples.items()}
    return _table(
        ("similarity", "removed", "kept"),
        ((f"{one['similarity']:.3f}", texts[one["id"]], texts[one["kept"]]) for one in pairs),
    )


def _text(sample: Mapping[str, Any]) -> str:
    """The beginning of a sample as a person would read it."""
    content = sample[sample["kind"]]
    if sample["kind"] == "document":
        parts = [content["title"], *(section["text"] for section in content["sections"][:2])]
    else:
        parts = [content["question"], content["answer"]]
    return " / ".join(part for part in parts if part)


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    return "\n".join([head, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    short = flat if len(flat) <= PREVIEW_CHARACTERS else f"{flat[:PREVIEW_CHARACTERS]}…"
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", short)
