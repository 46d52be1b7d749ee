"""`factory runs list | show`: what training runs left behind, from their own directories."""

from typing import Annotated, Any

import typer
from pydantic import ValidationError

from factory.cli.output import JsonFlag, console, print_json, problems, table
from factory.cli.plot import curve
from factory.cli.versions import open_namespace
from factory.diagnose.steps import step_lines
from factory.errors import NamespaceError, RunFailed
from factory.namespace import Namespace, RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.namespace.run_files import contents
from factory.namespace.runs import record_path
from factory.reports import RunRecord, StepLine
from factory.settings import Settings
from factory.spec import RunSpec

app = typer.Typer(help="Training runs: list them, show one.", no_args_is_help=True)


@app.command("list")
def list_runs(json: JsonFlag = False) -> None:
    """Every run in the namespace that you may read, newest first."""
    settings = Settings.from_environment()
    directories = open_namespace(settings).runs()
    states = _dagster_states([run.run_id for run in directories], settings)
    rows = [_row(run, states.get(run.run_id)) for run in directories]
    if json:
        print_json(rows)
    elif rows:
        console.print(table("Runs", rows))
    else:
        console.print("No runs yet. `factory launch smoke` starts one.")


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its first digits.")],
    json: JsonFlag = False,
) -> None:
    """What a run was asked for, what ran, how its loss went, where its files are."""
    settings = Settings.from_environment()
    directory = find_run(open_namespace(settings), run)
    lines = readable_steps(directory)
    record = _read(directory, record_path(directory).name, RunRecord)
    saved = [str(checkpoint.path) for checkpoint in complete_checkpoints(directory)]
    facts: dict[str, Any] = {
        **_row(directory, _dagster_states([directory.run_id], settings).get(directory.run_id)),
        "run": directory.run_id,
        "directory": str(directory.path),
        "checkpoints": saved,
        "spec": _read(directory, "spec.json", RunSpec),
        "record": record,
    }
    if json:
        print_json(
            {
                **facts,
                "spec": facts["spec"] and facts["spec"].model_dump(),
                "record": record and record.model_dump(),
                "steps_log": [line.model_dump() for line in lines],
            }
        )
        return
    spec: RunSpec | None = facts.pop("spec")
    facts.pop("record")
    facts["checkpoints"] = "\n".join(saved) or None
    console.print(table("", [{"": name, " ": value} for name, value in facts.items()]))
    if spec:
        console.print(table("Asked for", [{"": k, " ": str(v)} for k, v in spec]))
    if record:
        pins = record.launch.datasets
        console.print(table("Read", [{"asset": k, "version": v} for k, v in sorted(pins.items())]))
    if lines:
        console.print("[bold]Loss[/]")
        console.print("\n".join(curve([line.loss for line in lines])), highlight=False)


def find_run(namespace: Namespace, run: str) -> RunDirectory:
    """A run by its id or the first digits of it.

    Raises:
        NamespaceError: there is no such run, or several start so.
    """
    found = [directory for directory in namespace.runs() if directory.run_id.startswith(run)]
    if len(found) != 1:
        problem = "No run starts" if not found else f"{len(found)} runs start"
        raise NamespaceError(
            f"{problem} with {run!r} in {namespace.root}. `factory runs list` shows all."
        )
    return found[0]


def readable_steps(directory: RunDirectory) -> list[StepLine]:
    """The run's step lines; none, with a word on standard error, where they cannot be read."""
    try:
        return step_lines(directory.path)
    except (RunFailed, NamespaceError) as error:
        problems.print(str(error), style="red")
        return []


def _row(run: RunDirectory, state: str | None) -> dict[str, Any]:
    spec = _read(run, "spec.json", RunSpec)
    lines = readable_steps(run)
    last = lines[-1] if lines else None
    return {
        "run": run.run_id[:8],
        "classification": run.classification,
        "recipe": spec.recipe if spec else None,
        "mix": spec.mix if spec else None,
        "cluster": spec.cluster if spec else None,
        "state": state,
        "steps": f"{last.step}/{last.of}" if last else None,
        "tokens": last.tokens if last else None,
        "loss": last.loss if last else None,
    }


def _read[M: (RunSpec, RunRecord)](run: RunDirectory, name: str, model: type[M]) -> M | None:
    try:
        return model.model_validate_json(contents(run.path, name))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        problem = f"{run.path / name} cannot be read: {error.error_count()} problems in it"
    except NamespaceError as error:
        problem = str(error)
    problems.print(problem, style="red")
    return None


def _dagster_states(run_ids: list[str], settings: Settings) -> dict[str, str]:
    """What Dagster says of each run; a run of another instance has no state here.

    Of a run that was resumed, what it says of the Dagster run that went on with it last.
    """
    from dagster import RunsFilter

    from factory.control.instance import ensure
    from factory.control.resuming import RESUMES

    if not run_ids:
        return {}
    with ensure(settings) as instance:
        runs = instance.get_runs(filters=RunsFilter(run_ids=run_ids))
        resumed = instance.get_runs(filters=RunsFilter(tags={RESUMES: run_ids}))  # newest first
        states = {run.run_id: run.status.value.lower() for run in runs}
        return states | {
            run.tags[RESUMES]: run.status.value.lower() for run in reversed(list(resumed))
        }
