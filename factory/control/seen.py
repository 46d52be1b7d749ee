"""Seen: what a run's page shows of its mixture, read from the ledger that the run wrote."""

from pathlib import Path
from typing import Any

import dagster as dg

from factory.control import figures
from factory.observe.mixture.realized import realized_of
from factory.reports import RealizedMix, RealizedSource


def seen(run: Path) -> dict[str, Any]:
    """Metadata about the mixture of a run; none where it counted nothing."""
    mix = realized_of(run)
    if mix is None:
        return {}
    shown: dict[str, Any] = {
        "mixture": dg.MetadataValue.md(figures.mixture(mix)),
        "datasets seen": dg.MetadataValue.table(records=[_record(one) for one in mix.sources]),
        "padding": (mix.ending + mix.aligning) / mix.slots if mix.slots else 0.0,
    }
    if mix.alarms:
        shown["drift"] = dg.MetadataValue.md(_listed(mix))
    return shown


def _record(source: RealizedSource) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "dataset": source.counts.source,
            "role": source.role,
            "declared %": round(100 * source.declared, 2),
            "% of samples": round(100 * source.share_of_samples, 2),
            "% of tokens": round(100 * source.share_of_tokens, 2),
            "% of loss tokens": round(100 * source.share_of_loss_tokens, 2),
            "epochs": round(source.epochs, 3),
            "samples": source.counts.samples,
            "distinct": source.counts.distinct,
            "tokens": source.counts.tokens,
            "dropped": sum(samples for samples, _ in source.counts.dropped.values()),
        }
    )


def _listed(mix: RealizedMix) -> str:
    return "\n".join(f"- {alarm}." for alarm in mix.alarms)
