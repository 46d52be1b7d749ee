"""Nested rows: where each record holds a list and the rows are its items.

A bundle of patient records is the usual case: `Rows("*.jsonl", items="entry")`. Positions count the
items of the whole file. A record without items is a row that is rejected, so that it is counted.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from factory.data.formats.opened import Opened
from factory.data.row import Row

NO_ITEMS = "no items in the record"
NO_OBJECT = "item is no object"


def expanded(rows: Iterable[Row], file: Opened, path: str) -> Iterator[Row]:
    """The items of every row's list, which lies under the names in `path`, `data.entry`."""
    number = 0
    for row in rows:
        if row.bad is not None:
            number += 1
            yield file.bad(number, row.bad)
            continue
        for item in _items(row.json, path.split(".")) or (NO_ITEMS,):
            number += 1
            yield _row(file, number, item)


def _row(file: Opened, number: int, item: object) -> Row:
    if item is NO_ITEMS:
        return file.bad(number, NO_ITEMS)
    if not isinstance(item, dict):
        return file.bad(number, NO_OBJECT)
    return file.row(number, json=cast("dict[str, Any]", item))


def _items(value: object, names: list[str]) -> list[object]:
    for name in names:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return cast("list[object]", value) if isinstance(value, list) else []
