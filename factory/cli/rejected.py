"""`factory rejected`: rows that gave no sample, with the reason. They lie beside the samples."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from factory.cli.output import JsonFlag, console, print_json, table
from factory.cli.versions import nothing_at, open_namespace, resolve
from factory.errors import NamespaceError
from factory.keys import Key, parse
from factory.namespace import Namespace, Version

SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(rejected)


def rejected(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A dataset, public/text/medquad.")],
    version: Annotated[
        str | None,
        typer.Argument(help="A version of its `clean`; the newest if left out, current or not."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Only rows with this reason.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many rows to print.")] = SHOWN,
    json: JsonFlag = False,
) -> None:
    """Print rejected rows: file, position and reason, and how a public row begins."""
    namespace = open_namespace()
    found = _version(namespace, parse(key.removesuffix("/clean")) / "clean", version)
    reasons = Counter(row["reason"] for row in _rows(found))
    if reason is not None and reason not in reasons:
        known = ", ".join(map(repr, reasons)) or "none, since no row was rejected"
        raise NamespaceError(f"No row of {found} was rejected for {reason!r}. Reasons: {known}.")
    chosen = (row for row in _rows(found) if reason in (None, row["reason"]))
    rows = list(islice(chosen, count))
    if json:
        print_json({"version": str(found), "reasons": dict(reasons.most_common()), "rows": rows})
        return
    counted = [{"reason": name, "rows": number} for name, number in reasons.most_common()]
    console.print(table(f"Rejected rows of {found}", counted or [{"reason": "none", "rows": 0}]))
    if rows:
        console.print(table("", rows))


def _version(namespace: Namespace, key: Key, version: str | None) -> Version:
    """The one that is named, or the newest: a failed check is what one looks here for."""
    if version is not None:
        return resolve(namespace, key, version)
    newest = next(iter(namespace.versions(key)), None)
    if newest is None:
        raise NamespaceError(nothing_at(namespace, key.path))
    return newest


def _rows(version: Version) -> Iterator[dict[str, Any]]:
    from factory.data import layout
    from factory.data import table as parquet

    for path in parquet.files(version.path / layout.REJECTED):
        for batch in parquet.batches(path):
            yield from batch.to_pylist()
