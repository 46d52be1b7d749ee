"""`factory cluster list | check` and `factory manifest`: where runs can go, and as what."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factory.cli.assignment import SetOption, assignment
from factory.cli.output import JsonFlag, console, print_json, table
from factory.settings import Settings

if TYPE_CHECKING:  # the control plane costs time that `--help` does not have
    from factory.control.checklist import Line
    from factory.control.clusters import Kubernetes, Local

app = typer.Typer(help="Clusters: list them, check one.", no_args_is_help=True)

PROBLEM = "problem"
STYLES = {"ok": "green", "note": "yellow", "failed": "bold red"}


def register(main: typer.Typer) -> None:
    """Add the commands of this file."""
    main.add_typer(app, name="cluster")
    main.command()(manifest)


@app.command("list")
def list_clusters(json: JsonFlag = False) -> None:
    """Every cluster in definitions/clusters, and what is wrong with a file that is none."""
    from factory.control.clusters import declared

    found = declared()
    rows = [_row(cluster) for cluster in found.clusters.values()]
    rows += [_wrong_row(name, problem) for name, problem in found.wrong.items()]
    if not found.wrong and not json:
        rows = [{name: row[name] for name in row if name != PROBLEM} for row in rows]
    print_json(rows) if json else console.print(table("Clusters", rows))


@app.command("check")
def check_cluster(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A file in definitions/clusters.")],
    json: JsonFlag = False,
) -> None:
    """See whether runs can go to a cluster: access, rights, versions, queues, nodes, volumes.

    Changes nothing there. Ends with 1 where something that runs need is missing; each such line
    says what to do.
    """
    from factory.control.checklist import any_failed

    lines = _lines(name)
    if json:
        print_json([asdict(line) for line in lines])
    else:
        width = max(len(line.what) for line in lines)
        for line in lines:
            console.print(f"{line.state:<7}", style=STYLES[line.state], end="")
            console.print(f"{line.what:<{width}}  {line.found}", markup=False, highlight=False)
            if line.action:
                console.print(f"{'':{width + 9}}{line.action}", markup=False, highlight=False)
    if any_failed(lines):
        raise typer.Exit(1)


def _lines(name: str) -> "list[Line]":
    from factory.control.check_local import local_lines, this_machine
    from factory.control.clusters import Kubernetes, cluster
    from factory.control.kube.checkup import checkup

    settings = Settings.from_environment()
    found = cluster(name)
    if isinstance(found, Kubernetes):
        return checkup(found, settings.image)
    return local_lines(found, this_machine(settings))


def _row(cluster: "Kubernetes | Local") -> dict[str, Any]:
    from factory.control.clusters import Kubernetes

    row = {"cluster": cluster.name, "kind": cluster.kind, "profile": cluster.profile}
    if not isinstance(cluster, Kubernetes):
        row |= {"nodes": 1, "GPUs": None, "scheduler": None, "address": "this machine"}
        return row | {PROBLEM: None}
    nodes = cluster.nodes
    return row | {
        "nodes": nodes.count,
        "GPUs": nodes.count * nodes.gpus,
        "scheduler": cluster.scheduler,
        "address": cluster.address,
        PROBLEM: None,
    }


def _wrong_row(name: str, problem: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("kind", "profile", "nodes", "GPUs", "scheduler", "address"))
    return {"cluster": name, **nothing, PROBLEM: problem}


def manifest(
    job: Annotated[str, typer.Argument(metavar="JOB_OR_SPEC", help="A job, or a run's spec.json.")],
    name: Annotated[str, typer.Option("--cluster", help="A Kubernetes cluster.")],
    settings: SetOption = None,
    server: Annotated[
        bool, typer.Option("--server", help="Let the API server check it; nothing is made.")
    ] = False,
) -> None:
    """Print the RayJob that a run would be on a cluster, as YAML.

    Versions of datasets and the run's id are not known before a launch; the rest is as it will be.
    """
    import yaml

    from factory.control.kube.preview import preview, validate

    sets = dict(map(assignment, settings or ()))
    made = preview(job, name, Settings.from_environment(), sets)
    if server:
        validate(made)
    typer.echo(yaml.safe_dump(made.rayjob, sort_keys=False), nl=False)
