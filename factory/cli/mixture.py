"""`factory mixture RUN`: which datasets a run has seen, beside what its mix declares."""

from pathlib import Path
from typing import Annotated, Any

import typer

from factory.cli.output import JsonFlag, console, print_json, problems, table
from factory.cli.runs import find_run
from factory.cli.versions import open_namespace
from factory.errors import RunFailed, SpecError
from factory.keys import parse
from factory.namespace import Namespace
from factory.reports import MixtureLine, RealizedMix, RealizedSource
from factory.settings import Settings

DIFFERENCES_SHOWN = 20

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its first digits.")]
ReplayFlag = Annotated[
    bool,
    typer.Option("--replay", help="Count again from the data alone; every number must agree."),
]
UntilOption = Annotated[
    int | None, typer.Option("--until", metavar="STEP", help="Replay no further than this step.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mixture")(mixture)


def mixture(
    run: RunArgument, replay: ReplayFlag = False, until: UntilOption = None, json: JsonFlag = False
) -> None:
    """Which datasets a run has seen: shares by three ways of counting, epochs, drops, padding.

    Shares are held against what the mix declares. With --replay everything is counted again from
    the mix.lock of the run and the data, which takes as long as making its tokens.
    """
    from factory.observe.mixture.realized import realized_of

    namespace = open_namespace(Settings.from_environment())
    directory = find_run(namespace, run).path
    mix = realized_of(directory)
    if mix is None:
        raise RunFailed(
            f"{directory} has no ledger: its first line comes with the first logging interval, and "
            "with `ledger: false` in the run's spec there is none."
        )
    compared = _replay(namespace, directory, until) if replay else None
    if json:
        print_json({**mix.model_dump(), "replayed": compared})
        return
    _print(mix)
    if compared is not None:
        console.print(
            f"The replay agrees: {compared['numbers']:,} numbers of {compared['lines']:,} lines, "
            f"the last of step {compared['until']:,}."
        )


def _print(mix: RealizedMix) -> None:
    of = {"sample": "samples", "token": "tokens", "loss_token": "loss tokens"}[mix.basis]
    first = f"steps {mix.since + 1:,} to {mix.step:,} of {mix.of:,}"
    console.print(table(f"{mix.mix}, {first}", [_row(one, of) for one in mix.sources]))
    tokens, slots = mix.slots - mix.ending - mix.aligning, max(1, mix.slots)
    console.print(
        f"{tokens:,} tokens in {mix.slots:,} positions: {mix.ending / slots:.2%} padding at the "
        f"end of sequences, {mix.aligning / slots:.2%} for alignment."
    )
    dropped = [
        {"dataset": one.counts.source, "dropped because": reason, "samples": n, "tokens": cut}
        for one in mix.sources
        for reason, (n, cut) in sorted(one.counts.dropped.items())
    ]
    if dropped:
        console.print(table("Never trained on", dropped))
    for alarm in mix.alarms:
        problems.print(f"drift: {alarm}.", style="yellow")
    console.print(f"mix.lock {mix.mix_lock}", style="dim", highlight=False)


def _row(source: RealizedSource, of: str) -> dict[str, Any]:
    counts = source.counts
    limit = "cap" if source.max_epochs else "4 epochs"
    return {
        "dataset": counts.source,
        "role": source.role.replace("_", " "),
        f"declared % of {of}": f"{100 * source.declared:.1f} ± {100 * source.band:.1f}",
        "samples %": round(100 * source.share_of_samples, 1),
        "tokens %": round(100 * source.share_of_tokens, 1),
        "loss tokens %": round(100 * source.share_of_loss_tokens, 1),
        "": "" if source.within else "out of its band",
        "epochs": round(source.epochs, 3),
        "seen %": round(100 * source.coverage, 1),
        "samples": counts.samples,
        "tokens": counts.tokens,
        "images": counts.image_tokens,
        "cut": counts.truncated,
        "reaches": f"{limit} at step {source.reaches:,}" if source.reaches else None,
    }


def _replay(namespace: Namespace, directory: Path, until: int | None) -> dict[str, int]:
    """Count again; raise where a number differs."""
    from factory.observe.mixture.files import ledger_of, lock_of, reading_of
    from factory.observe.mixture.replay import differences, replayed
    from factory.observe.mixture.totals import COLUMNS, POSITIONS

    lines = _lines(ledger_of(directory), until)
    lock, reading = lock_of(directory), reading_of(directory)
    folders = {
        source.key: namespace.version(parse(source.train), source.version).path
        for source in lock.sources
    }
    with problems.status("Counting again") as status:
        found = replayed(
            lock,
            folders,
            reading,
            [line.step - line.since for line in lines],
            lambda done, of: status.update(f"Counting again: {done / of:.0%}"),
        )
    told = differences(lines, found)
    if told:
        left = len(told) - DIFFERENCES_SHOWN
        more = f"\nand {left} more" if left > 0 else ""
        raise RunFailed(
            "The replay does not agree with the run, so the run did not read what its mix.lock, "
            "its seed and these data give:\n" + "\n".join(told[:DIFFERENCES_SHOWN]) + more
        )
    numbers = len(lines) * (len(lock.sources) * len(COLUMNS) + len(POSITIONS))
    return {"lines": len(lines), "numbers": numbers, "until": lines[-1].step}


def _lines(lines: list[MixtureLine], until: int | None) -> list[MixtureLine]:
    kept = [line for line in lines if until is None or line.step <= until]
    if not kept:
        raise SpecError(
            f"--until {until}: the first line of the ledger is of step {lines[0].step}. "
            "Give that step or a later one."
        )
    return kept
