"""`factory resume RUN`: go on with a run that was preempted, killed, or ended by a limit."""

from typing import Annotated

import typer

from factory.cli.assignment import assignment
from factory.cli.launch import report
from factory.cli.output import JsonFlag
from factory.cli.progress import Progress
from factory.cli.runs import find_run
from factory.cli.versions import open_namespace
from factory.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(resume)


def resume(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its first digits.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the run's spec."),
    ] = None,
    fresh_data: Annotated[
        bool,
        typer.Option(
            "--fresh-data", help="Keep the weights, and begin with the data from the start."
        ),
    ] = False,
    redistribute: Annotated[
        bool,
        typer.Option(
            "--redistribute",
            help="Go on with the data on another number of ranks, for instance with "
            "--set workers=1 --set loader_workers=2.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Go on with a run, exactly where its last complete checkpoint left it."""
    from factory.control import launch as control

    chosen = Settings.from_environment()
    directory = find_run(open_namespace(chosen), run)
    progress = Progress(quiet=json)
    result = control.resume(
        directory.run_id,
        dict(map(assignment, settings or ())),
        fresh_data=fresh_data,
        redistribute=redistribute,
        settings=chosen,
        progress=progress.line,
    )
    report(result, json)
