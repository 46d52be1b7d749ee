"""`factory demo`: a dataset made, a model trained on it, and what happened, in a few minutes.

Everything goes through Dagster, on the instance that `make dev` shows. The demo fails, with a
reason, if any part of it does, or if the loss did not fall.
"""

from pathlib import Path

import typer
from rich.panel import Panel

from factory.cli.output import console, table
from factory.cli.plot import curve
from factory.cli.progress import Progress
from factory.cli.runs import find_run
from factory.cli.versions import open_namespace
from factory.diagnose.loss import LossTrend, loss_trend
from factory.diagnose.steps import step_lines
from factory.errors import RunFailed, StepError
from factory.keys import public
from factory.namespace import Namespace
from factory.namespace.checkpoints import complete_checkpoints
from factory.reports import StepLine
from factory.settings import Settings
from factory.units import size

DATASET = public("text/plos")
JOB = "smoke"


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(demo)


def demo() -> None:
    """Materialize the quick-start dataset, train on it, and show both."""
    settings = Settings.from_environment()
    settings.make_default_root()
    progress = Progress()
    _materialize(settings, progress)
    run_id = _train(settings, progress)
    namespace = open_namespace(settings)
    directory = find_run(namespace, run_id)
    lines = step_lines(directory.path)
    trend = loss_trend([line.loss for line in lines])
    _print_dataset(namespace)
    _print_run(directory.path, lines, trend, len(complete_checkpoints(directory)))
    if not trend.fell:
        raise RunFailed(
            f"The loss went from {trend.first:.3f} to {trend.last:.3f}: a fall of more than "
            f"{trend.margin:.3f} was expected. Look at {directory.path}."
        )
    if not complete_checkpoints(directory):
        raise RunFailed(f"The run left no checkpoint in {directory.path / 'checkpoints'}.")
    console.print(
        Panel.fit(
            "[bold]make dev[/] opens the graph, the checks and this run at http://127.0.0.1:3000\n"
            f"[bold].venv/bin/factory runs show {run_id[:8]}[/] prints the run again\n"
            "[bold]docs/add-a-dataset.md[/] adds your own dataset, in one file",
            title="Next",
            title_align="left",
        )
    )


def _materialize(settings: Settings, progress: Progress) -> None:
    from factory.control import launch
    from factory.control.freshness import stale_steps

    progress.headline(f"1  Dataset {DATASET}")
    stale = stale_steps(DATASET, settings)
    if not stale:
        progress.line("nothing has changed since it was materialized: nothing to do")
        return
    progress.line(f"{len(stale)} assets to make: {', '.join(str(key) for key in stale)}")
    result = launch.materialize([str(DATASET)], settings=settings, progress=progress.line)
    if not result.success:
        raise StepError(
            f"Dagster run {result.run_id} did not materialize {DATASET}:\n"
            + "\n".join(result.failures)
        )


def _train(settings: Settings, progress: Progress) -> str:
    from factory.control import launch

    progress.headline(f"2  Training job {JOB}")
    result = launch.launch(JOB, {}, settings=settings, progress=progress.line)
    if not result.success:
        raise RunFailed(f"Dagster run {result.run_id} failed:\n" + "\n".join(result.failures))
    return result.run_id


def _print_dataset(namespace: Namespace) -> None:
    clean = namespace.current(DATASET / "clean")
    if clean is None:
        raise StepError(f"{DATASET / 'clean'} has no current version after its run.")
    rejected = clean.manifest.facts.get("rejected")
    reasons = rejected if isinstance(rejected, dict) else {}
    deduplicated = namespace.current(DATASET / "deduplicated")
    removed = deduplicated.manifest.facts.get("duplicates") if deduplicated else None
    duplicates = removed if isinstance(removed, dict) else {}
    bytes_total = sum(entry.size for entry in clean.manifest.files.values())
    facts = {
        "directory": clean.path,
        "version": clean.id,
        "rows kept": f"{clean.manifest.rows:,} ({size(bytes_total)})",
        "rows rejected": ", ".join(f"{count} {why}" for why, count in reasons.items()) or "none",
        "duplicates removed": ", ".join(f"{n} {kind}" for kind, n in duplicates.items()),
    }
    console.print()
    console.print(table(f"Dataset {DATASET}", [{"": k, " ": v} for k, v in facts.items()]))
    rows = [
        {
            "asset": str(key).removeprefix(f"{DATASET}/"),
            "check": name,
            "": "[green]passed[/]" if record.passed else "[red]failed[/]",
            "saw": record.summary,
        }
        for key in sorted(namespace.keys(), key=str)
        if str(key).startswith(f"{DATASET}/") and (version := namespace.current(key))
        for name, record in namespace.checks(version).items()
    ]
    console.print(table("Checks", rows))


def _print_run(path: Path, lines: list[StepLine], trend: LossTrend, saved: int) -> None:
    facts = {
        "directory": path,
        "loss": f"{trend.first:.3f} -> {trend.last:.3f} nats per token "
        f"(means of the first and last fifth; a fall under {trend.margin:.3f} could be noise)",
        "tokens trained": f"{lines[-1].tokens:,} in {lines[-1].step} steps",
        "checkpoints": saved,
    }
    console.print()
    console.print(table("Training run", [{"": k, " ": v} for k, v in facts.items()]))
    console.print("\n".join(curve([line.loss for line in lines])), highlight=False)
    console.print()
