"""`factory gc`: which old versions may go, and removing them when that is asked for."""

from collections import Counter
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from factory.cli.output import JsonFlag, console, print_json, table
from factory.cli.versions import existing, open_namespace
from factory.errors import DamagedVersion
from factory.keys import Key
from factory.namespace import Namespace, Version, retention
from factory.namespace.failures import explained
from factory.units import size


class Lineage(StrEnum):
    """What stays of that which versions named only by old runs were made from."""

    all = "all"
    sources = "sources"


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(gc)


def gc(  # noqa: PLR0913 - each is an option of the command line
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="Only versions at and below this key.")
    ] = None,
    keep: Annotated[
        int,
        typer.Option(min=0, help="Keep so many of the newest of each key whose checks passed."),
    ] = 3,
    older_than: Annotated[
        float,
        typer.Option(
            metavar="DAYS", min=0, max=36_500, help="Only what was not made or used for so long."
        ),
    ] = 14.0,
    lineage: Annotated[
        Lineage,
        typer.Option(help="What only old runs name: keep all it was made from, or its sources."),
    ] = Lineage.all,
    locks: Annotated[
        list[Path] | None,
        typer.Option(help="Another folder whose lock files name versions to keep."),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove them. Without it nothing is touched.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """List versions that nothing needs any more; with --delete, remove them."""
    from factory.discovery import definitions_folder

    namespace = open_namespace()
    asked = frozenset(existing(namespace, key)) if key else None
    policy = retention.Policy(
        keep=keep,
        older_than=timedelta(days=older_than),
        lineage=lineage.value,
        within=lambda one: asked is None or one in asked,
        folders=(definitions_folder(), *(locks or ())),
    )
    with explained(namespace.root, "looking for old versions"):
        found = retention.plan(namespace.root, policy)
        freed = retention.space(found.going)
        rows = [_row(version) for version in found.going]
        done = _collected(namespace, policy) if delete else None
    if json:
        print_json(_facts(rows, found, freed, done))
        return
    if rows:
        console.print(table("Nothing needs these", rows))
    for reason, count in Counter(found.kept.values()).most_common():
        console.print(f"kept: {count:,}  {reason}", style="dim")
    if done is None:
        again = " --delete removes them." if rows else ""
        console.print(f"{len(rows):,} versions could go, {size(freed)}.{again}")
        return
    for busy, why in done.busy.items():
        console.print(f"{busy} stays as it is: {why}", style="yellow", markup=False)
    console.print(f"{len(done.removed):,} versions removed.")


def _collected(namespace: Namespace, policy: retention.Policy) -> retention.Collected:
    from factory.control.abandoned import STAGING_AGE

    namespace.sweep(STAGING_AGE)  # what a writer that died was reading is not read any more
    return retention.collect(namespace.root, policy, namespace.times)


def _row(version: Version) -> dict[str, object]:
    try:
        manifest = version.manifest
    except DamagedVersion:
        return {"key": str(version.key), "version": version.id, "rows": None, "created": "damaged"}
    return {
        "key": str(version.key),
        "version": version.id,
        "rows": manifest.rows,
        "created": manifest.created_at[:19],
    }


def _facts(
    rows: list[dict[str, object]],
    found: retention.Plan,
    freed: int,
    done: retention.Collected | None,
) -> dict[str, object]:
    busy: dict[Key, str] = {} if done is None else done.busy
    return {
        "going": rows,
        "bytes": freed,
        "kept": {str(version): why for version, why in found.kept.items()},
        "removed": None if done is None else [str(version) for version in done.removed],
        "busy": {str(key): why for key, why in busy.items()},
    }
