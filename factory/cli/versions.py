"""`factory path | verify | versions | rollback`: what the namespace holds under a key."""

from pathlib import PurePosixPath
from typing import Annotated

import typer

from factory.cli.output import JsonFlag, console, print_json, problems, table
from factory.errors import DamagedVersion, NamespaceError
from factory.keys import Key, parse
from factory.namespace import Namespace, Version
from factory.settings import Settings
from factory.units import size

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="An asset key, for instance public/text/plos/clean.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(path)
    app.command()(verify)
    app.command()(versions)
    app.command()(rollback)


def path(key: KeyArgument, json: JsonFlag = False) -> None:
    """Print the directory of the current version. A dataset's key lists its steps."""
    namespace = open_namespace()
    found = {
        str(k): str(v.path) for k in _under(namespace, parse(key)) if (v := namespace.current(k))
    }
    if not found:
        raise NamespaceError(nothing_at(namespace, key))
    if json:
        print_json(found)
    elif list(found) == [key]:
        typer.echo(found[key])
    else:
        console.print(
            table("", [{"key": name, "directory": where} for name, where in found.items()])
        )


def verify(
    key: KeyArgument,
    version: Annotated[
        str | None,
        typer.Argument(help="A version or its first digits; the current one if left out."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Hash every file again and compare with the manifest. Exit code 1 if anything differs."""
    namespace = open_namespace()
    targets = [resolve(namespace, k, version) for k in existing(namespace, key)]
    damage = {str(target): namespace.verify(target) for target in targets}
    if json:
        print_json(
            {
                name: [{"path": str(d.path), "problem": d.problem} for d in found]
                for name, found in damage.items()
            }
        )
    else:
        for target in targets:
            found = damage[str(target)]
            files = target.manifest.files
            total = size(sum(entry.size for entry in files.values()))
            state = "[red]damaged[/]" if found else "[green]intact[/]"
            console.print(f"{state}  {target}  {len(files):,} files, {total}")
            for item in found:
                console.print(f"  {item.path}: {item.problem}", style="red")
    if any(damage.values()):
        raise typer.Exit(1)


def versions(key: KeyArgument, json: JsonFlag = False) -> None:
    """List every version under a key, newest first, and which one is current."""
    namespace = open_namespace()
    rows = [
        _version_row(namespace, version)
        for k in existing(namespace, key)
        for version in namespace.versions(k)
    ]
    if json:
        print_json(rows)
    else:
        console.print(table(f"Versions of {key}", rows))


def rollback(
    key: KeyArgument,
    version: Annotated[str, typer.Argument(help="The version to go back to, or its first digits.")],
    json: JsonFlag = False,
) -> None:
    """Make an older version current again, and tell Dagster."""
    from factory.control import freshness
    from factory.control.instance import ensure

    settings = Settings.from_environment()
    namespace = open_namespace(settings)
    target = resolve(namespace, parse(key), version)
    before = namespace.current(target.key)
    now = namespace.rollback(target.key, target.id)
    with ensure(settings) as instance:
        freshness.report(instance, now)
    if json:
        print_json({"key": key, "before": before.id if before else None, "current": now.id})
    else:
        console.print(f"{key}: {before.id if before else 'none'} -> [bold]{now.id}[/]")


def open_namespace(settings: Settings | None = None) -> Namespace:
    """The namespace that the environment names."""
    chosen = settings or Settings.from_environment()
    chosen.make_default_root()
    return Namespace(chosen.root)


def resolve(namespace: Namespace, key: Key, version: str | None) -> Version:
    """A version by its id or by the first digits of it; the current one for None.

    Raises:
        NamespaceError: there is no such version, or several start so.
    """
    if version is None:
        current = namespace.current(key)
        if current is None:
            raise NamespaceError(
                f"{key} has no current version. `factory versions {key}` lists what was published."
            )
        return current
    every = namespace.versions(key)
    found = [v for v in every if version and v.id.startswith(version)]
    if not every and (below := _under(namespace, key)):
        raise NamespaceError(
            f"{key} has no versions of its own, its steps have: {', '.join(map(str, below))}. "
            "Name the step that is meant."
        )
    if len(found) != 1:
        known = ", ".join(v.id for v in every) or "none"
        problem = "is no version" if not found else f"could be any of {len(found)} versions"
        raise NamespaceError(f"{version!r} {problem} of {key}. Versions: {known}.")
    return found[0]


def _under(namespace: Namespace, key: Key) -> list[Key]:
    prefix = f"{key}/"
    everything = list(namespace.keys())
    return sorted((k for k in everything if k == key or str(k).startswith(prefix)), key=str)


def existing(namespace: Namespace, key: str) -> list[Key]:
    """The keys at and below this one that have versions.

    Raises:
        NamespaceError: there are none.
    """
    found = _under(namespace, parse(key))
    if not found:
        raise NamespaceError(nothing_at(namespace, key))
    return found


def nothing_at(namespace: Namespace, key: str) -> str:
    """Why there is nothing under a key: it is not declared, or not materialized yet."""
    from factory.control.nearest import naming
    from factory.discovery import datasets

    known, asked = datasets(), PurePosixPath(key)
    if not any(
        asked.is_relative_to(one) or PurePosixPath(one).is_relative_to(asked) for one in known
    ):
        return f"No dataset {key} under definitions/datasets, and no version. {naming(key, known)}"
    return (
        f"Nothing is current under {key} in {namespace.root}. "
        "`factory datasets` lists what is declared; "
        "`factory materialize KEY` or the UI (`make dev`) makes it."
    )


def _version_row(namespace: Namespace, version: Version) -> dict[str, object]:
    current = namespace.current(version.key)
    row: dict[str, object] = {
        "key": str(version.key),
        "version": version.id,
        "current": current is not None and current.id == version.id,
    }
    try:
        manifest = version.manifest
    except DamagedVersion as damage:
        problems.print(str(damage), style="red", markup=False)
        return row | {
            "rows": None,
            "checks": "manifest damaged",
            "limit": None,
            "partial": None,
            "created": None,
            "run": None,
        }
    return row | {
        "rows": manifest.rows,
        "checks": _checks(namespace, version),
        "limit": manifest.limit,
        "partial": manifest.partial,
        "created": manifest.created_at[:19],
        "run": manifest.run_id,
    }


def _checks(namespace: Namespace, version: Version) -> str:
    try:
        records = namespace.checks(version)
    except DamagedVersion:
        return "unreadable: run them again"
    passed = sum(record.passed for record in records.values())
    return f"{passed}/{len(records)} passed" if records else "not run"
