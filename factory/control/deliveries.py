"""The sensor on the drop zone: each new delivery is asked to be materialized, exactly once.

A delivery is known by what its `delivery.json` says, so one that is copied again, or touched, is
not new. There is no cursor: Dagster keeps the key of every run that a sensor asked for. What a run
does with a delivery is in `factory.data.fetch.partner`.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import dagster as dg

from factory.control.lineage import asset_key
from factory.data.dataset import Dataset
from factory.data.identifiers.statement import NAME, Statement, read_statement
from factory.data.sources import PartnerDrop
from factory.data.steps import steps
from factory.errors import DeliveryRefused
from factory.settings import Settings

SECONDS_BETWEEN = 60


def deliveries_sensor(datasets: Iterable[Dataset], settings: Settings) -> dg.SensorDefinition:
    """The sensor `new_deliveries` on every dataset that a partner delivers."""
    watched = [one for one in datasets if isinstance(one.source, PartnerDrop)]
    status = dg.DefaultSensorStatus

    def new_deliveries() -> Iterator[dg.RunRequest | dg.SkipReason]:
        waiting: list[str] = []
        for dataset in watched:
            answer = _look(dataset, settings.drops)
            if isinstance(answer, dg.RunRequest):
                yield answer
            else:
                waiting.append(f"{dataset.key}: {answer}")
        if waiting:
            yield dg.SkipReason("; ".join(waiting))

    return dg.SensorDefinition(
        name="new_deliveries",
        evaluation_fn=new_deliveries,
        asset_selection=dg.AssetSelection.assets(
            *(asset_key(step.key) for dataset in watched for step in steps(dataset))
        ),
        minimum_interval_seconds=SECONDS_BETWEEN,
        default_status=status.RUNNING if settings.sensors_on else status.STOPPED,
        description="Materializes a dataset when its partner has delivered: once per content of "
        f"{NAME}, when every file that it lists is there.",
    )


def _look(dataset: Dataset, drops: Path | None) -> dg.RunRequest | str:
    """What to run for the delivery of a dataset, or why nothing."""
    if drops is None:
        return "FACTORY_DROPS is not set"
    folder = drops / dataset.source.address
    statement = folder / NAME
    try:
        if statement.is_symlink() or not statement.is_file():
            return "no delivery"
        content = statement.read_bytes()
        missing = _missing(folder)
    except OSError as error:
        return f"its drop folder cannot be read ({type(error).__name__})"
    if missing:
        return f"{missing:,} files of the delivery are not there yet"
    return dg.RunRequest(
        run_key=run_key(dataset, content),
        asset_selection=[asset_key(step.key) for step in steps(dataset)],
    )


def run_key(dataset: Dataset, content: bytes) -> str:
    """One word for a delivery to a dataset: the same one is never run for twice."""
    return hashlib.sha256(dataset.key.path.encode() + b"\0" + content).hexdigest()


def _missing(folder: Path) -> int:
    """Files that are listed and not there. A bad statement lists none: its run says what is bad."""
    statement = _statement(folder)
    if statement is None:
        return 0
    return sum(not (folder / name).is_file() for name in statement.files)


def _statement(folder: Path) -> Statement | None:
    try:
        return read_statement(folder)
    except DeliveryRefused:
        return None
