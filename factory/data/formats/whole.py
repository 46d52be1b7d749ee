"""Whole files: text as `row.string`, anything else as `row.content`."""

from collections.abc import Iterator

from factory.data.formats import limits
from factory.data.formats.encoding import text
from factory.data.formats.errorpage import refuse_page
from factory.data.formats.faults import NUL
from factory.data.formats.opened import Opened
from factory.data.row import Row
from factory.errors import BadFile


def contents(file: Opened) -> Iterator[Row]:
    """The file, as bytes."""
    yield file.row(None, data=file.whole())


def texts(file: Opened) -> Iterator[Row]:
    """The file, as text; a page only where the declaration says that text is meant.

    Raises:
        BadFile: it is too long, or an HTML page under the name of a text.
    """
    if file.rows.format is None:
        refuse_page(file.stream, file.name, "plain text")
    parts: list[str] = []
    length = 0
    for part in text(file):
        length += len(part)
        parts.append(part)
        if length > limits.LARGEST_ROW:
            raise BadFile(
                f"{file.name}: is longer than {limits.LARGEST_ROW:,} characters, and a row is the "
                "whole file. Declare what a row is, or split it."
            )
    whole = "".join(parts)
    if "\0" in whole:
        yield file.bad(None, NUL)
    else:
        yield file.row(None, plain=whole)
