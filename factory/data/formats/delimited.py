"""Delimited: CSV and TSV, strictly. Every cell is text, by the name of its column.

Cells in quotes may hold line ends. Blank lines are no rows. Names that come twice, stray quotes and
a quote that is never closed end the step with the line; so do rows with more or fewer cells than
columns, unless the declaration says that these are rejected.
"""

import csv
from collections.abc import Iterator
from typing import Any

from factory.data.formats import limits
from factory.data.formats.encoding import text
from factory.data.formats.errorpage import refuse_page
from factory.data.formats.faults import NUL
from factory.data.formats.lines import lines
from factory.data.formats.opened import Opened
from factory.data.row import Row
from factory.errors import BadFile

RAGGED = "more or fewer cells than columns"


def rows(file: Opened) -> Iterator[Row]:
    """One row per record below the header."""
    refuse_page(file.stream, file.name, "a table")
    cells = records(file)
    columns = _columns(file, cells)
    for number, (line, row) in enumerate(cells, start=1):
        if len(row) != len(columns):
            if file.rows.ragged == "refuse":
                raise _ragged(file, line, len(row), len(columns))
            yield file.bad(number, RAGGED)
        elif "\0" in "".join(row):
            yield file.bad(number, NUL)
        else:
            record = dict(zip(columns, row, strict=True))
            yield file.row(number, json=record)


def records(file: Opened) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, the header's included, with the line that it begins in.

    Raises:
        BadFile: quotes are where none can be.
    """
    csv.field_size_limit(limits.LARGEST_ROW)  # the library's own is 128 KiB, for the whole process
    is_tsv = file.pattern.format(file.inner) == "tsv"
    delimiter = file.rows.delimiter or ("\t" if is_tsv else ",")
    quote = file.rows.quote
    dialect: dict[str, Any] = {"delimiter": delimiter, "strict": True}
    dialect |= {"quoting": csv.QUOTE_NONE} if quote is None else {"quotechar": quote}
    reader = csv.reader(lines(text(file), file.name), **dialect)
    line = 0
    try:
        for row in reader:
            if row:
                yield line + 1, row
            line = reader.line_num
    except csv.Error as error:
        raise BadFile(
            f"{file.name}, line {line + 1}: not a table: {error}. If its quotes are no quotes, "
            "declare Rows(quote=None)."
        ) from None


def _columns(file: Opened, cells: Iterator[tuple[int, list[str]]]) -> tuple[str, ...]:
    declared = file.rows.columns
    if not file.rows.header:
        return declared or ()
    line, names = next(cells, (1, list[str]()))
    if not names:
        raise BadFile(f"{file.name}: is empty, so its columns have no names.")
    if declared is not None:
        if len(names) != len(declared):
            raise BadFile(
                f"{file.name}, line {line}: has {len(names)} columns, where {len(declared)} are "
                "declared."
            )
        return declared
    twice = [place for place, name in enumerate(names, start=1) if name in names[: place - 1]]
    if twice:
        raise BadFile(
            f"{file.name}, line {line}, column {twice[0]}: has the name of an earlier column. "
            "Declare Rows(columns=(...)) with a name for each, and header=False if this line is "
            "a row."
        )
    return tuple(names)


def _ragged(file: Opened, line: int, cells: int, columns: int) -> BadFile:
    return BadFile(
        f"{file.name}, line {line}: has {cells} cells where {columns} columns are. If such rows "
        "may be left out, declare Rows(ragged='reject')."
    )
