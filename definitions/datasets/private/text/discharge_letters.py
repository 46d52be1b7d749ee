"""Discharge letters as a partner hospital delivers them: one JSON object a line, pseudonymized."""

from factory.data import Dataset, PartnerDrop, Rejected, Row, Sample
from factory.keys import private

SECTIONS = ("history", "findings", "medication", "recommendation")


def clean(row: Row) -> Sample | Rejected:
    """All letters of a patient share a group, so that no patient is in two splits."""
    if row.record["language"] != "en":
        return Rejected("not English")
    sections = [(name.capitalize(), row.text(name).strip()) for name in SECTIONS]
    filled = [(heading, text) for heading, text in sections if text]
    if not filled:
        return Rejected("empty letter")
    return Sample.document(
        id=row.text("letter_id"),
        title="Discharge letter",
        sections=filled,
        group=row.text("patient_pseudonym"),
    )


discharge_letters = Dataset(
    key=private("text/discharge_letters"),
    license="LicenseRef-data-use-agreement",
    source=PartnerDrop(folder="discharge_letters", rows="**/*.jsonl"),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    max_errors=0.01,
)
