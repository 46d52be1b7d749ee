"""PubMedQA, the labelled training half: 500 questions on abstracts, answered yes, no or maybe."""

import json

from factory.data import Dataset, Git, Rejected, Row, Rows, Sample, checks
from factory.keys import public

TEST = "test_ground_truth.json"
"""Names the 500 of the file that are the benchmark."""


def clean_any(row: Row) -> Sample:
    """The abstract without its conclusion comes first; the conclusion explains the answer."""
    context = "\n\n".join(text.strip() for text in row.record["CONTEXTS"])
    return Sample.question(
        id=row.text("pmid"),
        question=f"{context}\n\n{row.text('QUESTION').strip()}",
        options=("yes", "no", "maybe"),
        answer=row.text("final_decision"),
        explanation=row.text("LONG_ANSWER").strip(),
    )


def clean(row: Row) -> Sample | Rejected:
    """Nothing of the test half is trained on."""
    if row.text("pmid") in json.loads(row.beside(TEST)):
        return Rejected("in the test half")
    return clean_any(row)


pubmedqa = Dataset(
    key=public("instructions/pubmedqa"),
    license="MIT",
    source=Git(
        url="https://github.com/pubmedqa/pubmedqa",
        revision="1cbae8e92f72f20c8d3747cbb3bf5bc53554d997",
        rows=Rows("data/ori_pqal.json", keyed="pmid", beside=(f"data/{TEST}",)),
    ),
    clean=clean,
    checks=[checks.rows(500, 500), checks.rejected("in the test half", at_most=0.5)],
)
