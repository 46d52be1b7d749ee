"""`factory datasets | new-dataset`: what is declared, and a new declaration with holes."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factory.cli.output import JsonFlag, console, print_json, problems, table
from factory.cli.versions import open_namespace
from factory.data.template import KINDS, declaration
from factory.errors import DamagedVersion, DeclarationError, NamespaceError
from factory.keys import parse
from factory.namespace import Namespace
from factory.settings import CHECKOUT

if TYPE_CHECKING:
    from factory.data.dataset import Dataset


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("datasets")(list_datasets)
    app.command("new-dataset")(new_dataset)


def list_datasets(json: JsonFlag = False) -> None:
    """Every declared dataset, with what of it is current."""
    from factory.discovery import datasets

    namespace = open_namespace()
    rows = [_row(dataset, namespace) for dataset in datasets().values()]
    if json:
        print_json(rows)
    else:
        console.print(table("Declared datasets", rows))


def _row(dataset: "Dataset", namespace: Namespace) -> dict[str, Any]:
    """One dataset; the others are listed whatever is wrong with it."""
    from factory.data.steps import steps

    every = steps(dataset)
    row: dict[str, Any] = {"dataset": str(dataset.key), "license": dataset.license}
    try:
        current = [version for step in every if (version := namespace.current(step.key))]
        clean = namespace.current(dataset.key / "clean")
        return row | {
            "rows": clean.manifest.rows if clean else None,
            "partial": any(version.manifest.partial for version in current),
            "steps current": f"{len(current)}/{len(every)}",
            "version": clean.id if clean else None,
        }
    except DamagedVersion as damage:
        problems.print(str(damage), style="red", markup=False)
        state = "damaged"
    except NamespaceError:  # the private tree, to most people
        state = "may not be read"
    return row | {"rows": None, "partial": None, "steps current": state, "version": None}


def new_dataset(
    key: Annotated[str, typer.Argument(metavar="KEY", help="For instance public/text/medquad.")],
    kind: Annotated[
        str, typer.Option(metavar=" | ".join(KINDS), help="What a row becomes.")
    ] = KINDS[0],
    json: JsonFlag = False,
) -> None:
    """Write a declaration with holes to fill in; of a partner's delivery where KEY is private."""
    _refuse_nesting(key)
    target = CHECKOUT / "definitions" / "datasets" / f"{parse(key)}.py"
    text = declaration(parse(key), kind)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DeclarationError(f"{target} exists already; nothing was changed.") from None
    if json:
        print_json({"key": key, "file": str(target)})
    else:
        console.print(
            f"[bold]{target}[/]\nFill in what is marked, then `make dev` shows its assets."
        )


def _refuse_nesting(key: str) -> None:
    """A file and a folder of one name cannot both be imported, nor a key lie inside another."""
    root = CHECKOUT / "definitions" / "datasets"
    declared = [path.relative_to(root).with_suffix("") for path in root.rglob("[!_]*.py")]
    for other in declared:
        if other.as_posix() != key and (
            other.is_relative_to(key) or PurePosixPath(key).is_relative_to(other)
        ):
            raise DeclarationError(
                f"{key} and the declared {other} lie inside one another. Choose a name beside it."
            )
