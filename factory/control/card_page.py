"""The card of a dataset as one page of markdown, which Dagster shows with the materialization.

What it says is in `card_words`, samples are rendered by `previews`, pictures drawn by `figures`. A
page lives in the event log, so its size is bounded: the last sections go first.
"""

from collections.abc import Iterable

from factory.control import figures, markdown
from factory.control.card import Card
from factory.control.card_words import Table, summary, tables

LIMIT = 190_000
"""Characters of a page."""

CELL_CHARACTERS = 600

LEFT_OUT = "*More did not fit here; the version's directory has everything.*"


def page(card: Card, pictures: str = "", samples: str = "") -> str:
    """The whole card. Pictures and samples are given for public datasets only."""
    lines = ((f"**{name}**", _cell(text)) for name, text in summary(card).items())
    sections = [
        *(f"⚠️ **{warning}**" for warning in card.warnings),
        markdown.table(("", ""), lines),
        figures.lengths(card.statistics.lengths, unit="tokens") if card.statistics else "",
        *map(_table, tables(card)),
        pictures,
        f"**Some samples**\n\n{samples}" if samples else "",
    ]
    return _bounded(section for section in sections if section)


def _table(table: Table) -> str:
    rows = (tuple(map(_cell, row)) for row in table.rows)
    return markdown.table(table.columns, rows, numbers=True)


def _cell(text: str) -> str:
    return markdown.cell(text, CELL_CHARACTERS)


def _bounded(sections: Iterable[str]) -> str:
    shown: list[str] = []
    left = LIMIT - len(LEFT_OUT)
    for section in sections:
        left -= len(section) + 2
        if left < 0:
            shown.append(LEFT_OUT)
            break
        shown.append(section)
    return "\n\n".join(shown)
