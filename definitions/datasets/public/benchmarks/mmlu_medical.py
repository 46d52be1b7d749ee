"""MMLU, the test part of six medical subjects: 1,089 questions with four options (English)."""

from pathlib import PurePosixPath

from factory.data import Dataset, Git, Row, Rows, Sample, checks
from factory.keys import public

LETTERS = "ABCD"
COLUMNS = ("question", *LETTERS, "answer")


def clean(row: Row) -> Sample:
    """The files have no header; the subject is the file's name."""
    options = tuple(row.text(letter).strip() for letter in LETTERS)
    return Sample.question(
        id=row.id,
        question=row.text("question").strip(),
        options=options,
        answer=options[LETTERS.index(row.text("answer"))],
        meta={"subject": PurePosixPath(row.file).stem.removesuffix("_test")},
    )


mmlu_medical = Dataset(
    key=public("benchmarks/mmlu_medical"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/Teddy-XiongGZ/MIRAGE",
        revision="392943af99cd94cafd50a0de2e7fca24bbf65494",
        rows=Rows("rawdata/mmlu/data/test/*_test.csv", columns=COLUMNS, header=False),
    ),
    clean=clean,
    checks=[checks.rows(1_089, 1_089)],
)
