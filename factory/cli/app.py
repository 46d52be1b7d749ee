"""The `factory` command: its groups, its exit codes, one way of printing an error.

Exit codes: 0 done, 1 the thing asked about is not so, 2 usage (a word that means nothing),
130 interrupted.
Each command is in the file of its noun beside this one.
"""

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.text import Text

from factory.cli import (
    cards,
    cluster,
    datasets,
    demo,
    dev,
    differences,
    follow,
    launch,
    mix,
    mixture,
    orphans,
    recipe,
    rejected,
    resume,
    retention,
    runs,
    versions,
)
from factory.errors import FactoryError, KeyFormatError, SpecError

app = typer.Typer(
    name="factory",
    help="Turns a pull request into a controlled training experiment for clinical models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# In the order in which a newcomer needs them, which is that of `factory --help`.
demo.register(app)
dev.register(app)
datasets.register(app)
launch.register(app)
cards.register(app)
rejected.register(app)
versions.register(app)
differences.register(app)
retention.register(app)
resume.register(app)
follow.register(app)
mixture.register(app)
cluster.register(app)
orphans.register(app)
app.add_typer(runs.app, name="runs")
app.add_typer(mix.app, name="mix")
app.add_typer(recipe.app, name="recipe")

USAGE_ERRORS = (KeyFormatError, SpecError)
"""Errors that say that a word of the command line means nothing: exit code 2."""


INTERRUPTED = 130
"""128 and the number of SIGINT, as shells count."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        app(list(arguments))
    except SystemExit as end:  # Typer has printed what was wrong with the usage
        if end.code == INTERRUPTED:  # and turned an interrupt into this
            _print_error("Nothing that was finished is lost; call the command again.")
        return end.code if isinstance(end.code, int) else 1
    except FactoryError as error:
        _print_error(str(error))
        return 2 if isinstance(error, USAGE_ERRORS) else 1
    return 0


def _print_error(message: str) -> None:
    Console(stderr=True, soft_wrap=True).print(Text("error: ", "bold red") + Text(message))
