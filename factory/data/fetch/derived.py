"""Samples of other datasets, written as JSON lines: what a derived dataset starts from."""

from pathlib import Path

from factory.data import layout, table
from factory.data.fetch.errand import Errand
from factory.data.progress import Ticker
from factory.data.sample import canonical
from factory.data.sources import Derived


def fetch(source: Derived, errand: Errand) -> Path:
    """A folder with one file per dataset. It lies in the namespace, as samples may be private."""
    ticker = Ticker(errand.say, "samples read")
    for key in source.inputs:
        file = errand.scratch / f"{key.path.removesuffix('/clean')}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as lines:
            for sample in ticker.over(table.samples(errand.inputs[key].path / layout.SAMPLES)):
                lines.write(canonical(sample.as_dict()) + b"\n")
    return errand.scratch
