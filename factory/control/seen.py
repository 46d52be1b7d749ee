"""Seen: what a run's page shows of its mixture, read from the ledger that the run wrote."""

from pathlib import Path
from typing import Any

import dagster as dg

from factory.control import figures
from factory.control.markdown import escaped, table
from factory.observe.mixture.realized import realized_of
from factory.reports import RealizedMix, RealizedSource


def seen(run: Path) -> dict[str, Any]:
    """Metadata about the mixture of a run; none where it counted nothing."""
    mix = realized_of(run)
    if mix is None:
        return {}
    shown: dict[str, Any] = {
        "mixture": dg.MetadataValue.md(f"{figures.mixture(mix)}\n\n{_table(mix)}"),
        "padding": (mix.ending + mix.aligning) / mix.slots if mix.slots else 0.0,
    }
    if mix.alarms:
        shown["drift"] = dg.MetadataValue.md(_listed(mix))
    return shown


def _table(mix: RealizedMix) -> str:
    """As markdown: a table of Dagster's own breaks keys and numbers over several lines."""
    of = {"sample": "samples", "token": "tokens", "loss_token": "loss tokens"}[mix.basis]
    head = (
        *("dataset", f"declared % of {of}", "% of samples", "% of tokens", "% of loss tokens"),
        *("epochs", "samples", "distinct", "tokens", "dropped samples"),
    )
    return table(head, map(_row, mix.sources), numbers=True)


def _row(source: RealizedSource) -> tuple[str, ...]:
    counts = source.counts
    dropped = sum(samples for samples, _ in counts.dropped.values())
    shares = (source.share_of_samples, source.share_of_tokens, source.share_of_loss_tokens)
    return (
        escaped(f"{counts.source} ({source.role.replace('_', ' ')})"),
        f"{100 * source.declared:.1f} ± {100 * source.band:.1f}",
        *(f"{100 * share:.1f}" for share in shares),
        f"{source.epochs:.3f}",
        *(f"{number:,}" for number in (counts.samples, counts.distinct, counts.tokens, dropped)),
    )


def _listed(mix: RealizedMix) -> str:
    return "\n".join(f"- {alarm}." for alarm in mix.alarms)
