"""MTS-Dialog, the training part: 1,201 visits, each with one section of the note (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.data.kinds import Message
from factory.keys import public


def note_of(row: Row, *, id: str, group: str) -> Sample:  # noqa: A002  as in Sample
    """A visit as a request to write one section of its note, and that section."""
    section = row.text("section_header").strip()
    asked = f"{row.text('dialogue').strip()}\n\nWrite the section {section} of the note."
    turns = [Message.of("user", asked), Message.of("assistant", row.text("section_text").strip())]
    return Sample.conversation(id=id, messages=turns, group=group, meta={"section": section})


def clean(row: Row) -> Sample:
    """A visit and its translations share a group, so that no visit is in two splits."""
    number = row.text("ID")
    return note_of(row, id=number, group=f"visit-{number}")


mts_dialog = Dataset(
    key=public("dialogue/mts_dialog"),
    license="CC-BY-4.0",
    source=Git(
        url="https://github.com/abachaa/MTS-Dialog",
        revision="3ff0801933608d6f570468c13125125fb5cabdea",
        rows="Main-Dataset/MTS-Dialog-TrainingSet.csv",
    ),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    checks=[checks.rows(1_201, 1_201)],
)
