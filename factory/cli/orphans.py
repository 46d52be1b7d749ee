"""`factory orphans`: what ended runs left behind, on every cluster and on this machine."""

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from factory.cli.output import JsonFlag, console, print_json, problems, table
from factory.settings import Settings

if TYPE_CHECKING:  # the control plane costs time that `--help` does not have
    from factory.control.left_behind import Report

REMOVE_SECONDS = 180.0
"""For one cluster: its pods have a grace time of their own."""


def register(main: typer.Typer) -> None:
    """Add the command of this file."""
    main.command()(orphans)


def orphans(
    delete: Annotated[bool, typer.Option("--delete", help="Remove them.")] = False,
    grace: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", min=0, help="Time that a run must be over (10)."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """RayJobs, Ray clusters, Secrets and local Ray sessions whose run has ended or is unknown.

    Looks at every cluster of definitions/clusters. What another Dagster asked for is left alone.
    Ends with 1 where a cluster could not be looked at, or where, with --delete, something is still
    there afterwards.
    """
    reports = _reports(grace, delete=delete)
    rows = [asdict(row) for report in reports for row in report.rows]
    for row in rows:
        row["since"] = f"{row['since']:%Y-%m-%d %H:%M} UTC"
        gone = row.pop("gone")
        if not delete:
            del row["outcome"]
        elif json:
            row["gone"] = gone
    notes = [note for report in reports for note in report.notes]
    if json:
        print_json({"orphans": rows, "notes": notes})
    else:
        nothing = f"Nothing was left behind{_where(reports)}."
        console.print(table("Orphans", rows) if rows else nothing)
        for note in notes:
            problems.print(note, markup=False, highlight=False)
    if any(report.left or report.unseen for report in reports):
        raise typer.Exit(1)


def _where(reports: "list[Report]") -> str:
    return " where it could be looked at" if any(report.unseen for report in reports) else ""


def _reports(grace: float | None, *, delete: bool) -> "list[Report]":
    from factory.control.clusters import Kubernetes, declared
    from factory.control.fates import judge
    from factory.control.instance import ensure
    from factory.control.kube.orphans import GRACE
    from factory.control.left_behind import on_cluster, on_this_machine, on_wrong
    from factory.control.sessions import Sessions

    settings = Settings.from_environment()
    found = declared()
    clusters = [one for one in found.clusters.values() if isinstance(one, Kubernetes)]
    with ensure(settings) as instance:
        by = judge(instance, GRACE if grace is None else timedelta(minutes=grace))
        here = on_this_machine(Sessions(settings.state), by, remove=delete)
        within = REMOVE_SECONDS if delete else None
        there = [on_cluster(cluster, by, within) for cluster in clusters]
        return [here, *there, *on_wrong(found.wrong)]
