"""`factory recipe list | check`: what a recipe is, and whether so many GPUs can train it."""

from collections.abc import Iterable
from typing import Annotated

import typer

from factory.cli.assignment import assignment
from factory.cli.output import JsonFlag, console, print_json, table
from factory.discovery import recipe_fields, recipe_names

app = typer.Typer(help="Recipes: list them, check one on GPUs.", no_args_is_help=True)

SHOWN = (
    "model.seq_length",
    "train.global_batch_size",
    "train.micro_batch_size",
    "train.train_iters",
    "optimizer.lr",
)


@app.command("list")
def list_recipes(json: JsonFlag = False) -> None:
    """Every recipe, with the fields that most runs change."""
    rows = [
        {"recipe": name}
        | {path.rpartition(".")[2]: recipe_fields(name)[path].default for path in SHOWN}
        for name in recipe_names()
    ]
    print_json(rows) if json else console.print(table("Recipes", rows))


@app.command("check")
def check_recipe(  # noqa: PLR0913 - each is an option of the command line
    recipe: Annotated[str, typer.Argument(help="For instance qwen3_vl_30b_a3b.sft.")],
    gpus: Annotated[int, typer.Option(min=1, help="How many GPUs, over all nodes.")],
    gpu_type: Annotated[str, typer.Option(help="h100, h100_nvl or h200.")] = "h100",
    tokens: Annotated[float, typer.Option(min=1, help="Token budget for the cost.")] = 1e9,
    mfu: Annotated[
        float | None,
        typer.Option(min=0.001, max=1, help="Share of the GPU's peak that training reaches."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="A field of the recipe, as in a launch."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Build and validate the full configuration, and say what it costs. Needs no GPU.

    Ends with 1 where the layout is impossible, naming each rule that it breaks.
    """
    from factory.training.check import MFU, check
    from factory.training.check.facts import facts, lines

    share = MFU if mfu is None else mfu
    found = check(recipe, gpus, gpu_type, dict(map(assignment, overrides or ())))
    if json:
        print_json(facts(found, tokens, share))
    else:
        title = f"[bold]{found.recipe}[/]"
        console.print(f"{title}  {found.model}" if found.model else title)
        _print(lines(found, tokens, share))
        for rule in found.broken:
            console.print(f"impossible  {rule}", style="bold red", markup=False)
    if found.broken:
        raise typer.Exit(1)


def _print(lines: Iterable[tuple[str, str]]) -> None:
    for name, value in lines:
        style = "yellow" if name == "unverified" else ""
        console.print(f"{name:<12}{value}", style=style, markup=False, highlight=False)
