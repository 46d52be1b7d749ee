"""`factory dev`: the Dagster UI on the same instance and definitions as every other command."""

import os
import signal
import socket
import sys
from typing import Annotated

import typer

from factory.cli.output import console
from factory.errors import SettingsError
from factory.settings import CHECKOUT, Settings, inherited_environment

SUPERSEDED = "ignore:Function `dev_command` is superseded"
"""Advice to use `dg dev` instead, which is in a package that we do without."""


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(dev)


def dev(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the web server.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start `dagster dev`: the graph, the checks, the runs, and the launchpad."""
    from factory.control.abandoned import end_abandoned_runs
    from factory.control.instance import ensure

    _refuse_busy(host, port)
    settings = Settings.from_environment()
    with ensure(settings) as instance:
        end_abandoned_runs(instance)
    settings.make_default_root()
    console.print(f"Dagster at [bold]http://{host}:{port}[/]  (Ctrl-C stops it)")
    arguments = [sys.executable, "-m", "dagster", "dev"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored, and
    # Dagster does with SIGTERM what it does with SIGINT: nothing could end it
    os.chdir(CHECKOUT)  # its pyproject.toml names the code location
    os.execve(  # noqa: S606 - the shell is not wanted here
        sys.executable,
        [*arguments, "--host", host, "--port", str(port)],
        {"PYTHONWARNINGS": SUPERSEDED, **inherited_environment(), **settings.environment()},
    )


def _refuse_busy(host: str, port: int) -> None:
    """Dagster itself would go on without a web server, its daemon beside the other one's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingsError(
                f"{host}:{port} cannot be used ({error.strerror}). Another `factory dev` may be "
                f"running there already; stop it, or choose another port: "
                f"`.venv/bin/factory dev --port {port % 65535 + 1}`."
            ) from error
