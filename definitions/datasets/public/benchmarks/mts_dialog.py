"""MTS-Dialog, the two test parts: 400 visits, each with one section of the note (English)."""

from definitions.datasets.public.dialogue.mts_dialog import note_of
from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """Numbers restart in each file, so the file's name is part of the id."""
    return note_of(row, id=row.id, group=row.id)


mts_dialog = Dataset(
    key=public("benchmarks/mts_dialog"),
    role="benchmark",
    license="CC-BY-4.0",
    source=Git(
        url="https://github.com/abachaa/MTS-Dialog",
        revision="3ff0801933608d6f570468c13125125fb5cabdea",
        rows="Main-Dataset/MTS-Dialog-TestSet-*.csv",
    ),
    clean=clean,
    checks=[checks.rows(400, 400)],
)
