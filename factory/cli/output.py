"""How facts are printed: a table for a person, or the same facts as JSON for a program."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")]

WIDE_COLUMNS = 160
"""Where nothing says how wide the output is, in a pipe or a log, lines are not cut to 80."""

console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDE_COLUMNS)
problems = Console(stderr=True, soft_wrap=True)


def print_json(facts: Any) -> None:
    """Write facts to standard output as one JSON document."""
    typer.echo(json.dumps(facts, indent=2, default=str, ensure_ascii=False))


def table(title: str, rows: Sequence[Mapping[str, Any]], *, numbers: Collection[str] = ()) -> Table:
    """Rows of the same columns as a Rich table; numbers are right-aligned, as text those named."""
    result = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    first: Mapping[str, Any] = rows[0] if rows else {}
    for name, value in first.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        number = number or name in numbers
        result.add_column(
            name, justify="right" if number else "left", overflow="fold", min_width=len(name)
        )
    for row in rows:
        result.add_row(*(cell(value) for value in row.values()))
    return result


def cell(value: Any) -> str:
    """One value as a person reads it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
        case _:
            return str(value)
