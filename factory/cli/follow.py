"""`factory follow RUN`: take up a run on a cluster whose own process is gone."""

from typing import Annotated

import typer

from factory.cli.launch import report
from factory.cli.output import JsonFlag
from factory.cli.progress import Progress
from factory.cli.runs import find_run
from factory.cli.versions import open_namespace
from factory.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(follow)


def follow(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its first digits.")],
    json: JsonFlag = False,
) -> None:
    """Follow a run on a cluster whose own process was killed; it is neither ended nor doubled."""
    from factory.control import launch as control

    chosen = Settings.from_environment()
    directory = find_run(open_namespace(chosen), run)
    progress = Progress(quiet=json)
    report(control.follow(directory.run_id, settings=chosen, progress=progress.line), json)
