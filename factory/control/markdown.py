"""Markdown for Dagster's pages: tables, and text that a row wrote without its marks taking hold."""

import re
from collections.abc import Iterable, Sequence

_MARKS = re.compile(r"([|\\`*_<>\[\]#~&!$])")
_ITEM = re.compile(r"^(\s*)([-+=])|^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """A table of cells that are markdown already; `numbers` aligns all but the first right."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(columns) - 1))]
    lines = (f"| {' | '.join(row)} |" for row in (columns, rule, *rows))
    return "\n".join(lines)


def cell(text: str, characters: int) -> str:
    """The beginning of a text in one line, for a table."""
    return escaped(shortened(" ".join(text.split()), characters))


def quote(text: str, characters: int) -> str:
    """The beginning of a text as a block that keeps its lines."""
    lines = [line.strip() for line in shortened(text.strip(), characters).splitlines()]
    return "\n".join(f"> {escaped(line)}  " for line in lines if line) or "> "


def code(text: str, characters: int) -> str:
    """The beginning of a text in one line, as code inside a sentence."""
    flat = shortened(" ".join(text.split()), characters)
    fence = "`" * (max(map(len, re.findall("`+", flat)), default=0) + 1)
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}" if flat else ""


def shortened(text: str, characters: int) -> str:
    """The beginning of a text, with a sign where something is left out."""
    return text if len(text) <= characters else f"{text[:characters].rstrip()}…"


def escaped(text: str) -> str:
    """Text as it is: marks at work in markdown are shown instead."""
    return _ITEM.sub(r"\1\3\\\2\4", _MARKS.sub(r"\\\1", text))
