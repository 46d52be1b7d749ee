"""MedQA, the US test part with four options: 1,273 questions of licensing exams (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """Options are an object from letter to text."""
    return Sample.question(
        id=row.id,
        question=row.text("question").strip(),
        options=tuple(row.record["options"].values()),
        answer=row.text("answer").strip(),
        meta={"step": row.text("meta_info")},
    )


medqa = Dataset(
    key=public("benchmarks/medqa"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/Teddy-XiongGZ/MIRAGE",
        revision="392943af99cd94cafd50a0de2e7fca24bbf65494",
        rows="rawdata/medqa/data_clean/questions/US/4_options/phrases_no_exclude_test.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(1_273, 1_273)],
)
