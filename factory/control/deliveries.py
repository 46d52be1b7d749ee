"""The sensor on the drop zone: each new delivery is asked to be materialized, exactly once.

A delivery is known by what its `delivery.json` says, so one that is copied again, or touched, is
not new. One whose run failed is asked for again when something in its folder was changed since: a
file may have been incomplete. There is no cursor: Dagster keeps the key of every run that a sensor
asked for. What a run does with a delivery is in `factory.data.fetch.partner`.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import dagster as dg

from factory.control.lineage import asset_key
from factory.data.dataset import Dataset
from factory.data.fetch.staging_area import sweep
from factory.data.identifiers.statement import NAME, Statement, read_statement
from factory.data.sources import PartnerDrop
from factory.data.steps import steps
from factory.errors import DeliveryRefused
from factory.settings import Settings

SECONDS_BETWEEN = 60

DELIVERY = "factory/delivery"
"""Tag of a run: the statement of which dataset it was asked for, whatever lay beside it."""


def deliveries_sensor(datasets: Iterable[Dataset], settings: Settings) -> dg.SensorDefinition:
    """The sensor `new_deliveries` on every dataset that a partner delivers."""
    watched = [one for one in datasets if isinstance(one.source, PartnerDrop)]
    status = dg.DefaultSensorStatus

    def new_deliveries(
        context: dg.SensorEvaluationContext,
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        sweep(settings.state)  # what a killed intake left is unscanned, and no intake may follow
        waiting: list[str] = []
        for dataset in watched:
            answer = _look(dataset, settings.drops, context.instance)
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
        f"{NAME}, when every file that it lists is there; again when files change after a failure.",
    )


def _look(
    dataset: Dataset, drops: Path | None, instance: dg.DagsterInstance
) -> dg.RunRequest | str:
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
        key = run_key(dataset, content)
        corrected = _corrected(folder, key, instance)
    except OSError as error:
        return f"its drop folder cannot be read ({type(error).__name__})"
    if missing:
        return f"{missing:,} files of the delivery are not there yet"
    return dg.RunRequest(
        run_key=corrected or key,
        tags={DELIVERY: key},
        asset_selection=[asset_key(step.key) for step in steps(dataset)],
    )


def run_key(dataset: Dataset, content: bytes) -> str:
    """One word for a delivery to a dataset: the same one is never run for twice."""
    return hashlib.sha256(dataset.key.path.encode() + b"\0" + content).hexdigest()


def _corrected(folder: Path, key: str, instance: dg.DagsterInstance) -> str | None:
    """Another key, if the last run for this statement failed and the folder has changed since."""
    asked = dg.RunsFilter(tags={DELIVERY: key})
    last = next(iter(instance.get_run_records(asked, limit=1)), None)
    if last is None or last.dagster_run.status is not dg.DagsterRunStatus.FAILURE:
        return None
    digest = hashlib.sha256(key.encode())
    changed = 0.0
    for path in _entries(folder):
        found = path.lstat()
        changed = max(changed, found.st_ctime)
        digest.update(
            f"{os.fspath(path)}\0{found.st_size}\0{found.st_mtime_ns}\0".encode(
                "utf-8", "surrogateescape"
            )
        )
    return digest.hexdigest() if changed > last.create_timestamp.timestamp() else None


def _entries(folder: Path) -> Iterator[Path]:
    """The folder and all in it, in one order; a folder says when something in it was removed."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        yield Path(root)
        yield from (Path(root) / name for name in sorted(files))


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
