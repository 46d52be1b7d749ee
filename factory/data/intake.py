"""Intake: a partner's delivery to a raw version, once it was verified and scanned.

What is done to the delivery is in `fetch.partner`; this module carries what may be published into
the version, and beside it the table of where something was taken out.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from factory.data import content, layout, raw, table
from factory.data.fetch import partner
from factory.data.fetch.staging_area import staging_area, sweep
from factory.data.images import allowed
from factory.data.job import Job
from factory.data.progress import Ticker
from factory.data.sources import PartnerDrop
from factory.namespace import Staging

IDENTIFIERS = "identifiers.parquet"
"""Where direct identifiers were found: each of these rows stayed in the drop zone."""

POSITIONS = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("row", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("kind", pa.string()),
    ]
)


def state(job: Job, source: PartnerDrop) -> str:
    """What lies in the drop folder now; also removes what a killed intake left."""
    sweep(job.settings.state)
    return partner.state(source, job.errand(job.settings.state))


@dataclass(frozen=True)
class Intake:
    """Raw, from a delivery that was hashed before."""

    source: PartnerDrop
    state: str

    def __call__(self, job: Job, staging: Staging) -> None:
        """Nothing reaches the staging of the version before the scan has passed."""
        with staging_area(job.settings.state, job.settings.root) as scratch:
            delivery = partner.take_in(self.source, job.errand(scratch), self.state)
            files = staging.path / layout.RAW_FILES
            raw.take(delivery.folder, delivery.names, files, Ticker(job.say, "files taken"))
        _write(delivery.rejected, staging.path / IDENTIFIERS)
        allowed.write(delivery.burned_in_allowed, staging.path)
        total = sum((files / name).stat().st_size for name in delivery.names)
        staging.describe(
            content_id=content.files_hash(files, delivery.names),
            facts={"files": len(delivery.names), "bytes": total} | delivery.facts,
        )


def _write(rejected: list[partner.Rejected], path: Path) -> None:
    with table.Writer(path, POSITIONS) as writer:
        for one in rejected:
            writer.add(one)
