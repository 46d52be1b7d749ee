"""MedMCQA, the development part: 4,183 questions of Indian entrance exams (English)."""

from factory.data import Dataset, Git, Row, Rows, Sample, checks
from factory.keys import public

OPTIONS = ("opa", "opb", "opc", "opd")


def clean(row: Row) -> Sample:
    """`cop` counts the right option from 1."""
    options = tuple(row.text(name).strip() for name in OPTIONS)
    right = int(row.record["cop"])
    return Sample.question(
        id=row.text("id"),
        question=row.text("question").strip(),
        options=options,
        answer=options[right - 1],
        explanation=row.text("exp").strip() or None,
        meta={"subject": row.text("subject_name"), "topic": row.text("topic_name")},
    )


medmcqa = Dataset(
    key=public("benchmarks/medmcqa"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/Teddy-XiongGZ/MIRAGE",
        revision="392943af99cd94cafd50a0de2e7fca24bbf65494",
        rows=Rows("rawdata/medmcqa/data/dev.json", format="jsonl"),
    ),
    clean=clean,
    checks=[checks.rows(4_183, 4_183)],
)
