"""GSM8K, the training part: school mathematics with worked answers (7,473 questions, English)."""

import re

from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public

CALCULATOR = re.compile(r"<<[^<>]*>>")
"""Marks for a calculator, `48/2 = <<48/2=24>>24`: what stands between them is no language."""


def clean(row: Row) -> Sample:
    """The worked answer is the explanation; its last line, after `####`, the answer."""
    worked, _, answer = row.text("answer").rpartition("\n#### ")
    return Sample.question(
        id=row.id,
        question=row.text("question").strip(),
        answer=answer.strip(),
        explanation=CALCULATOR.sub("", worked).strip(),
    )


gsm8k = Dataset(
    key=public("instructions/gsm8k"),
    license="MIT",
    source=Git(
        url="https://github.com/openai/grade-school-math",
        revision="3101c7d5072418e28b9008a6636bde82a006892c",
        rows="grade_school_math/data/train.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(7_473, 7_473)],
)
