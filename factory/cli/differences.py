"""`factory diff`: what differs between two versions of a key, and why."""

from typing import Annotated, Any

import typer
from rich.text import Text

from factory.cli.output import JsonFlag, cell, console, print_json
from factory.cli.versions import KeyArgument, existing, open_namespace, resolve
from factory.data.differences import Difference, compare
from factory.data.differences.examples import Row, plain
from factory.errors import DamagedVersion, NamespaceError
from factory.keys import Key, parse
from factory.namespace import Namespace, Version
from factory.namespace.failures import explained

STEPS = ("raw", "clean", "deduplicated", "split", "energon")
"""The order in which steps are compared, so that a difference is shown where it comes from."""

type Shown = set[tuple[str, str]]
"""Examples that were printed, by kind and id."""

VALUE_CHARACTERS = 160
"""A parameter may be a whole policy; its beginning says which it is."""


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(diff)


def diff(
    key: KeyArgument,
    v1: Annotated[
        str | None, typer.Argument(metavar="[V1]", help="The older version; the one before V2.")
    ] = None,
    v2: Annotated[
        str | None, typer.Argument(metavar="[V2]", help="The newer version; the current one.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Examples to show of each kind.")] = 3,
    json: JsonFlag = False,
) -> None:
    """Say why two versions differ, and which rows were added, removed, changed or moved.

    A dataset's key compares each of its steps with the version before; a row is an example of one
    step only. Examples are rows: whoever may read the tree sees them here, and they are written
    nowhere.
    """
    namespace = open_namespace()
    with explained(namespace.root, f"comparing versions of {key}"):
        pairs = _pairs(namespace, key, v1, v2)
        if json:
            print_json([compare(one, other, examples).facts() for one, other in pairs])
            return
        shown: Shown = set()
        for one, other in pairs:
            _print(compare(one, other, examples), shown)


def _pairs(
    namespace: Namespace, key: str, v1: str | None, v2: str | None
) -> list[tuple[Version, Version]]:
    keys = existing(namespace, key)
    if keys == [parse(key)] or v1 is not None:
        return [_pair(namespace, parse(key), v1, v2)]
    several = [one for one in keys if len(namespace.versions(one)) > 1]
    pairs = [_pair(namespace, one, None, None) for one in sorted(several, key=_step)]
    if not pairs:
        raise NamespaceError(f"Each step of {key} has one version only: nothing to compare.")
    return pairs


def _step(key: Key) -> tuple[int, str]:
    places = [STEPS.index(part) for part in key.parts if part in STEPS]
    return (places[-1] if places else len(STEPS), key.path)


def _pair(
    namespace: Namespace, key: Key, v1: str | None, v2: str | None
) -> tuple[Version, Version]:
    named = resolve(namespace, key, v1) if v1 else None
    every = namespace.versions(key)
    after = resolve(namespace, key, v2) if v2 else namespace.current(key) or every[0]
    before = named or _before(every, after)
    if before == after:
        raise NamespaceError(f"{after} is compared with itself. Name another version.")
    return before, after


def _before(every: list[Version], after: Version) -> Version:
    """The newest version older than that one; a limited one only where that one is limited too."""
    older = every[every.index(after) + 1 :]
    for version in older:
        try:
            if version.manifest.limit is None or after.manifest.limit is not None:
                return version
        except DamagedVersion:
            continue
    raise NamespaceError(
        f"No version of {after.key} is older than {after.id}. "
        f"`factory versions {after.key}` lists all; name the one to compare with."
    )


def _print(difference: Difference, shown: Shown) -> None:
    counts = difference.counts
    console.print(Text(difference.verdict, "bold"))
    console.print(f"{difference.key}  {difference.before} -> {difference.after}", highlight=False)
    for cause in difference.causes:
        style = "" if cause.decides else "dim"
        console.print(
            Text(f"  {cause.name}: {_value(cause.before)} -> {_value(cause.after)}", style)
        )
    console.print(
        f"  {counts.of}: {counts.before:,} -> {counts.after:,}  added {counts.added:,}, "
        f"removed {counts.removed:,}, changed {counts.changed:,}",
        highlight=False,
    )
    for move, count in counts.moved.items():
        console.print(Text(f"  moved {move}: {count:,}"))
    _print_examples(difference, shown)
    console.print()


def _print_examples(difference: Difference, shown: Shown) -> None:
    again = 0
    for kind in ("added", "removed", "changed", "moved"):
        for row in getattr(difference.examples, kind):
            if (kind, row.id) in shown:
                again += 1
            else:
                shown.add((kind, row.id))
                _print_row(kind, row)
    if again:
        console.print(f"  examples shown above: {again:,}", style="dim", highlight=False)


def _print_row(kind: str, row: Row) -> None:
    console.print(Text.assemble((f"  {kind} ", "cyan"), plain(row.id), "  ", (row.text, "dim")))
    for change in row.changes:
        console.print(Text(f"    {change.field}"))
        console.print(Text(f"      - {change.before}", "red"))
        console.print(Text(f"      + {change.after}", "green"))
    if row.more:
        console.print(f"    and {row.more:,} more fields")


def _value(value: Any) -> str:
    text = plain(cell(value))
    return text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}..."
