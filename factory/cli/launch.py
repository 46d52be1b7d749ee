"""`factory materialize | launch`: start a Dagster run from here and follow it to its end."""

from typing import TYPE_CHECKING, Annotated

import typer

from factory.cli.assignment import assignment
from factory.cli.output import JsonFlag, console, print_json
from factory.cli.progress import Progress
from factory.data.engines import LOCAL, NAMES
from factory.errors import SpecError
from factory.settings import Settings

if TYPE_CHECKING:  # Dagster costs seconds; `--help` does not need it
    from factory.control.launch import LaunchResult


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(materialize)
    app.command()(launch)


def materialize(
    keys: Annotated[
        list[str], typer.Argument(metavar="KEY...", help="Datasets or single assets, by key.")
    ],
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Read only so many rows; such a version never becomes current."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(metavar=" | ".join(NAMES), help="What does the work; the result is the same."),
    ] = LOCAL,
    json: JsonFlag = False,
) -> None:
    """Materialize datasets through Dagster: what has not changed is reused."""
    from factory.control import launch as control

    if engine not in NAMES:
        raise SpecError(f"There is no engine {engine!r}; write one of {', '.join(NAMES)}.")
    progress = Progress(quiet=json)
    result = control.materialize(
        keys,
        limit=limit,
        engine=engine,
        settings=Settings.from_environment(),
        progress=progress.line,
    )
    report(result, json)
    if limit is not None and not json:
        console.print(
            f"Limited to the first {limit:,} rows: what was cleaned did not become current, "
            "and no run trains on it."
        )


def launch(
    job: Annotated[str, typer.Argument(help="A job of definitions/jobs, for instance smoke.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field for this run."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Launch a training job through Dagster and follow it."""
    from factory.control import launch as control

    progress = Progress(quiet=json)
    result = control.launch(
        job,
        dict(map(assignment, settings or ())),
        settings=Settings.from_environment(),
        progress=progress.line,
    )
    report(result, json)


def report(result: "LaunchResult", json: bool) -> None:
    """Print how a Dagster run ended; exit with 1 if it failed."""
    if json:
        print_json(
            {"run_id": result.run_id, "success": result.success, "failures": result.failures}
        )
    elif result.success:
        console.print(f"[green]done[/]  run {result.run_id}")
    else:
        console.print(f"[red]failed[/]  run {result.run_id}")
        for failure in result.failures:
            console.print(f"  {failure}", style="red")
    if not result.success:
        raise typer.Exit(1)
