"""Lines: JSON lines, and the lines of any text, which LF, CR LF or CR may end.

Blank lines are no rows, but count. A line that is no JSON object ends the step with its position;
one whose texts cannot be kept is rejected alone.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from factory.data.formats import limits
from factory.data.formats.encoding import text
from factory.data.formats.errorpage import refuse_page
from factory.data.formats.objects import BLANK, NotJson, Unusable, parse
from factory.data.formats.opened import Opened
from factory.data.pattern import Pattern, stem
from factory.data.row import Row
from factory.errors import BadFile

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_BYTES_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def rows(file: Opened) -> Iterator[Row]:
    """One row per line."""
    refuse_page(file.stream, file.name, "JSON lines")
    for number, line in enumerate(lines(text(file), file.name), start=1):
        written = line.rstrip(BLANK)
        if written.lstrip(BLANK):
            yield _row(file, number, written)


def _row(file: Opened, number: int, line: str) -> Row:
    try:
        value = parse(line)
    except Unusable as error:
        return file.bad(number, str(error))
    except NotJson as error:
        place = f"line {number}" + (f", column {error.column}" if error.column else "")
        raise BadFile(f"{file.name}, {place}: not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise BadFile(f"{file.name}, row {number}: not a JSON object but {type(value).__name__}.")
    return file.row(number, json=cast(dict[str, Any], value))


def lines(chunks: Iterable[str], name: str) -> Iterator[str]:
    """Lines with what ends them.

    Raises:
        BadFile: a line is longer than a row may be.
    """
    parts: list[str] = []
    length = 0
    count = 0
    for chunk in chunks:
        held = bool(parts) and parts[-1].endswith("\r")
        parts.append(chunk)
        length += len(chunk)
        if held or "\n" in chunk or "\r" in chunk:
            found = _split("".join(parts))
            rest = "" if found[-1].endswith("\n") else found.pop()
            yield from found
            count += len(found)
            parts, length = [rest], len(rest)
        if length > limits.LARGEST_ROW:
            raise BadFile(
                f"{name}, line {count + 1}: is longer than {limits.LARGEST_ROW:,} characters, "
                "which no row may be. Is it a list, in one line? Declare Rows(format='json')."
            )
    yield from _LINE.findall("".join(parts))


def _split(text: str) -> list[str]:
    """Lines with what ends them; where no CR stands alone, as fast as a text can be split."""
    if text.count("\r") != text.count("\r\n"):
        return _LINE.findall(text)
    found = [f"{line}\n" for line in text.split("\n")]
    last = found.pop()[:-1]
    return [*found, last] if last else found


def can_lose_lines(path: Path, pattern: Pattern) -> bool:
    """Whether lines can be emptied in a file byte by byte, and the others keep their numbers.

    JSON lines are the one format in which that is so.
    """
    name = path.name
    if stem(name)[1] is not None or pattern.format(name) != "jsonl" or pattern.members is not None:
        return False
    with path.open("rb") as file:
        wide = file.read(4).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"\0\0\xfe\xff"))
    return not wide and pattern.rows.encoding in (None, "utf-8")


def byte_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines of a UTF-8 file as bytes, with what ends them, numbered as `lines` numbers them."""
    for long in file:  # ends at LF
        yield from _BYTES_LINE.findall(long) if b"\r" in long else (long,)
