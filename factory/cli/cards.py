"""`factory card KEY`: what a dataset holds, as its page in Dagster shows it."""

from typing import TYPE_CHECKING, Annotated

import typer

from factory.cli.output import JsonFlag, console, print_json, table
from factory.cli.plot import bars
from factory.cli.versions import open_namespace, resolve
from factory.errors import DamagedVersion
from factory.keys import PrivateKey, parse

if TYPE_CHECKING:
    from factory.control.card import Card
    from factory.data.bins import Bins
    from factory.data.dataset import Dataset
    from factory.namespace import Version


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(card)


def card(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="A dataset, for instance public/text/medquad.")
    ],
    version: Annotated[
        str | None,
        typer.Argument(help="A version or its first digits; the current one if left out."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print what a dataset holds: rows, tokens, lengths, languages, licences, some samples.

    Of a private dataset it prints figures of the whole, never text of a row.
    """
    from factory.control.card import shown_step
    from factory.control.selection import dataset_of

    dataset = dataset_of(parse(key))
    namespace = open_namespace()
    step = shown_step(dataset)
    found = resolve(namespace, dataset.key / step, version)
    clean = dataset.key / "clean"
    read = found.manifest.inputs.get(clean.path)
    told = _told(dataset, found, namespace.version(clean, read) if read else found)
    if json:
        print_json(told.facts())
    else:
        _print(told)
        if not isinstance(dataset.key, PrivateKey):
            _print_samples(found)


def _told(dataset: "Dataset", found: "Version", cleaned: "Version") -> "Card":
    from factory.control.card import card_of

    try:
        return card_of(dataset, found, cleaned)
    except (KeyError, TypeError) as error:
        raise DamagedVersion(
            f"{cleaned}: its manifest does not say what the step saw ({error} is missing or no "
            "such value), so there is nothing to show. Materialize the key again."
        ) from None


def _print(told: "Card") -> None:
    from factory.control.card_words import summary, tables

    console.print(f"[bold]{told.dataset}[/]  {told.version}")
    for warning in told.warnings:
        console.print(warning, style="bold yellow", markup=False)
    console.print(table("", [{"": name, " ": text} for name, text in summary(told).items()]))
    if told.statistics and told.statistics.lengths.count:
        console.print("\n[bold]Tokens of a sample[/]")
        console.print("\n".join(bars(_doublings(told.statistics.lengths))), highlight=False)
    for one in tables(told):
        rows = [dict(zip(one.columns, row, strict=True)) for row in one.rows]
        console.print()
        console.print(table("", rows, numbers=one.columns[1:]))


def _print_samples(version: "Version") -> None:
    from rich.markdown import Markdown

    from factory.control.previews import samples_of

    console.print("\n[bold]Some samples[/]")
    console.print(Markdown(samples_of(version, pictures=False)))


def _doublings(lengths: "Bins") -> dict[str, int]:
    """Samples by length, a line for each doubling."""
    by_exponent: dict[int, int] = {}
    for edge, count in lengths.facts()["bins"].items():
        exponent = int(edge).bit_length()
        by_exponent[exponent] = by_exponent.get(exponent, 0) + count
    every = range(min(by_exponent), max(by_exponent) + 1)
    return {f"{(1 << exponent) >> 1:,}": by_exponent.get(exponent, 0) for exponent in every}
