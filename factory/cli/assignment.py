"""`--set NAME=VALUE` on a command line."""

from typing import Annotated

import typer

from factory.errors import SpecError

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="A field of the run spec, as for `launch`."),
]


def assignment(text: str) -> tuple[str, str]:
    """Name and value.

    Raises:
        SpecError: the text has no name, or no equals sign.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SpecError(f"--set {text!r} is not FIELD=VALUE. For instance: --set workers=2")
    return name.strip(), value.strip()
