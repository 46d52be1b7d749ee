"""`factory dev`: the Dagster UI on the same instance and definitions as every other command."""

import os
import sys
from typing import Annotated

import typer

from factory.cli.output import console
from factory.settings import CHECKOUT, Settings, inherited_environment


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(dev)


def dev(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the web server.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start `dagster dev`: the graph, the checks, the runs, and the launchpad."""
    from factory.control.instance import ensure

    settings = Settings.from_environment()
    ensure(settings).dispose()
    settings.make_default_root()
    console.print(f"Dagster at [bold]http://{host}:{port}[/]  (Ctrl-C stops it)")
    arguments = [sys.executable, "-m", "dagster", "dev"]
    os.chdir(CHECKOUT)  # its pyproject.toml names the code location
    os.execve(  # noqa: S606 - the shell is not wanted here
        sys.executable,
        [*arguments, "--host", host, "--port", str(port)],
        {**inherited_environment(), **settings.environment()},
    )
