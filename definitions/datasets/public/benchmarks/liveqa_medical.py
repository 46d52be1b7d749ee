"""TREC-2017 LiveQA, medical: 2,479 answers out of MedQuAD that people judged (English)."""

import re

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public

CELL = re.compile(r"Question:(?P<question>.*?)\nURL:(?P<url>.*?)\nAnswer:(?P<answer>.*)", re.DOTALL)


def clean(row: Row) -> Sample | Rejected:
    """Question, address and answer stand in one cell; some answers were judged several times."""
    found = CELL.fullmatch(row.text("Answer").strip())
    if found is None:
        return Rejected("not a question with an answer")
    question, url, answer = (part.strip() for part in found.groups())
    if not answer:
        return Rejected("no answer")
    meta = {"url": url, "answer": row.text("AnswerID").strip()}
    return Sample.question(id=row.id, question=question, answer=answer, meta=meta)


liveqa_medical = Dataset(
    key=public("benchmarks/liveqa_medical"),
    role="benchmark",
    license="CC-BY-4.0",
    source=Git(
        url="https://github.com/abachaa/MedQuAD",
        revision="577bd37b96c02d1833b2c9eed2de9f96964e96cb",
        rows="QA-TestSet-LiveQA-Med-Qrels-2479-Answers.zip!*/*.csv",
    ),
    clean=clean,
    checks=[checks.rows(2_470, 2_479)],
)
