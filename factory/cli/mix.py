"""`factory mix lock | show | diff`: which versions a mix reads, and what comes of its weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factory.cli.assignment import SetOption, assignment
from factory.cli.output import JsonFlag, console, print_json, problems
from factory.cli.versions import open_namespace
from factory.errors import GateRefused, SpecError
from factory.settings import Settings

if TYPE_CHECKING:
    from factory.data.mixing.lock import MixLock
    from factory.spec import RunSpec

app = typer.Typer(
    help="Mixes: lock the versions that one reads, show what comes of it, compare two.",
    no_args_is_help=True,
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A file in definitions/mixes, without .py.")
]
MixArgument = Annotated[
    str, typer.Argument(metavar="MIX", help="A file in definitions/mixes, or the path of a lock.")
]
JobOption = Annotated[
    str | None,
    typer.Option(help="The job whose recipe and steps count; the one job of the mix if left out."),
]
RecipeOption = Annotated[
    str | None, typer.Option(help="The recipe, where no job trains on the mix yet.")
]


@app.command("lock")
def lock(
    name: NameArgument,
    job: JobOption = None,
    recipe: RecipeOption = None,
    settings: SetOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if anything would change.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Pin the current versions of a mix in definitions/mixes/NAME.lock, for every later launch.

    Each is verified and must have passed its checks. Commit the file.
    """
    from factory.control.locking import kept_lock, lock_file
    from factory.data.mixing.words import changed

    made = _made(_spec(name, job, recipe, settings), proven=True)
    file, kept = lock_file(name), kept_lock(name)
    same = kept is not None and kept.pins == made.pins
    lines = ["it is not locked yet"] if kept is None else changed(kept, made)
    if not check and not same:
        file.write_bytes(made.to_json())
    if json:
        print_json({"file": str(file), "hash": made.hash, "same": same, "changes": lines})
    elif same:
        console.print(f"{file}\nnothing changed: {made.hash}")
    else:
        console.print(
            "\n".join([f"{file}{' would change' if check else ''}", *lines]), markup=False
        )
    if check and not same:
        raise typer.Exit(1)


@app.command("show")
def show(
    mix: MixArgument,
    job: JobOption = None,
    recipe: RecipeOption = None,
    settings: SetOption = None,
    json: JsonFlag = False,
) -> None:
    """What a mix is made of, and what a run of it will have seen at its end.

    Shares are of samples, of tokens, and of tokens that carry loss: measured on samples of each
    dataset. Versions are those of the lock, where the mix has one, else the current ones.
    """
    from factory.cli.mix_page import page

    found, where = _found(mix, job, recipe, settings)
    if json:
        print_json({"hash": found.hash, **found.model_dump(mode="json")})
    else:
        for part in page(found, where):
            console.print(part)


@app.command("diff")
def diff(
    before: MixArgument,
    after: MixArgument,
    job: JobOption = None,
    recipe: RecipeOption = None,
    settings: SetOption = None,
    json: JsonFlag = False,
) -> None:
    """How two mixes differ: datasets, versions, weights, and the shares that come of them.

    Exit code 1 if they differ.
    """
    from factory.data.mixing.words import changed

    old, _ = _found(before, job, recipe, settings)
    new, _ = _found(after, job, recipe, settings)
    lines = changed(old, new)
    if json:
        print_json({"before": old.hash, "after": new.hash, "changes": lines})
    elif lines:
        console.print("\n".join(lines), markup=False, highlight=False)
    else:
        console.print(f"They are the same: {new.hash}")
    if lines:
        raise typer.Exit(1)


def _found(
    mix: str, job: str | None, recipe: str | None, settings: list[str] | None
) -> tuple["MixLock", str]:
    """The lock in a file, or of a declared mix, and what to call it."""
    from factory.data.mixing.lock import MixLock

    path = Path(mix)
    if path.is_file():
        return MixLock.from_json(path.read_bytes(), mix), mix
    if path.suffix or len(path.parts) > len(("mixes", "name")):
        raise SpecError(f"There is no file {mix}. Write the name of a mix, or the path of a lock.")
    return _made(_spec(mix, job, recipe, settings), proven=False), mix


def _made(spec: "RunSpec", *, proven: bool) -> "MixLock":
    """The lock of a declared mix: of the current versions where it is to be written anew."""
    from factory.control.locking import kept_lock, locked, reading
    from factory.control.proof import refusal, unproven

    settings = Settings.from_environment()
    namespace = open_namespace(settings)
    found = reading(spec.mix, namespace, None if proven else kept_lock(spec.mix))
    against = list(found.problems)
    if proven:
        allow_partial = settings.allow_partial
        against += unproven(found, spec, namespace, allow_partial=allow_partial)
    if against:
        raise GateRefused(refusal(spec.mix, against))
    problems.print("measuring samples of each dataset ...", style="dim")
    return locked(spec, found, settings.state)


def _spec(name: str, job: str | None, recipe: str | None, settings: list[str] | None) -> "RunSpec":
    """The run spec of the job, or of a recipe, on that mix."""
    from factory.control.jobs import job_specs
    from factory.control.nearest import naming
    from factory.control.specs import check, with_sets
    from factory.discovery import mixes
    from factory.spec import RunSpec

    jobs, known = job_specs(), mixes()
    if name not in known:
        raise SpecError(f"No mix {name!r} in definitions/mixes. {naming(name, known)}")
    if job is not None and job not in jobs:
        raise SpecError(f"No job {job!r} in definitions/jobs. {naming(job, jobs)}")
    of_mix = [one for one, spec in jobs.items() if spec.mix == name]
    chosen = job or (of_mix[0] if len(of_mix) == 1 and recipe is None else None)
    base: Any = {"recipe": recipe} if chosen is None else jobs[chosen].model_dump()
    if base["recipe"] is None:
        trained = f"The jobs {', '.join(of_mix)} train" if of_mix else "No job trains"
        raise SpecError(
            f"{trained} on the mix {name!r}, so nothing says how it is read. Write --job JOB, or "
            "--recipe RECIPE, for instance debug.pretrain."
        )
    chosen_recipe = {} if recipe is None else {"recipe": recipe}
    spec = RunSpec.model_validate({**base, **chosen_recipe, "mix": name})
    spec = with_sets(spec, dict(map(assignment, settings or ())))
    return check(spec)
