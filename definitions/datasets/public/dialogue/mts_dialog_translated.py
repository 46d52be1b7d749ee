"""MTS-Dialog, the training part translated to French and back: 1,201 visits (English)."""

from definitions.datasets.public.dialogue.mts_dialog import note_of
from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public

TRANSLATED = "TR=EN-FR-EN "


def clean(row: Row) -> Sample | Rejected:
    """The file holds the originals as well; their set is declared beside this one."""
    name = row.text("ID")
    if not name.startswith(TRANSLATED):
        return Rejected("original, not a translation")
    number = name.removeprefix(TRANSLATED)
    return note_of(row, id=f"translated-{number}", group=f"visit-{number}")


mts_dialog_translated = Dataset(
    key=public("dialogue/mts_dialog_translated"),
    license="CC-BY-4.0",
    source=Git(
        url="https://github.com/abachaa/MTS-Dialog",
        revision="3ff0801933608d6f570468c13125125fb5cabdea",
        rows="Augmented-Data/MTS-Dialog-Augmented-TrainingSet-1-En-FR-EN-2402-Pairs.csv",
    ),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    checks=[checks.rows(1_201, 1_201), checks.rejected("original, not a translation", at_most=0.5)],
)
