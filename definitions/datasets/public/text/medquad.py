"""MedQuAD: consumer-health questions answered by NIH websites (16,407 answered pairs, English)."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Three of the twelve sources are published without their answers."""
    answer = row.text("Answer").strip()
    if not answer:
        return Rejected("no answer")
    return Sample.question(id=row.id, question=row.text("Question").strip(), answer=answer)


medquad = Dataset(
    key=public("text/medquad"),
    license="CC-BY-4.0",
    source=Git(
        url="https://github.com/abachaa/MedQuAD",
        revision="577bd37b96c02d1833b2c9eed2de9f96964e96cb",
        rows="**/*.xml//QAPair",
    ),
    clean=clean,
    split={"train": 0.98, "validation": 0.01, "test": 0.01},
    checks=[checks.rows(16_000, 16_500), checks.rejected("no answer", at_most=0.70)],
)
