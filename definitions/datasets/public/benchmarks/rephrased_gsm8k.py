"""GSM8K test questions in other words: what a search for shared words does not find (English)."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Question and answer stand in one text; row i rephrases row i of the test part."""
    question, _, answer = row.text("text").partition("\nAnswer:")
    question = question.removeprefix("Question:").strip()
    if not question:
        return Rejected("not rephrased")
    answer = answer.rpartition("####")[2].strip()
    return Sample.question(id=row.id, question=question, answer=answer or "not stated")


rephrased_gsm8k = Dataset(
    key=public("benchmarks/rephrased_gsm8k"),
    role="benchmark",
    license="Apache-2.0",
    source=Git(
        url="https://github.com/lm-sys/llm-decontaminator",
        revision="931834aa0990d9558a06c5d34daf4ad3852a72ae",
        rows="data/rephrase/rephrase_gsm8k.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(1_300, 1_319)],
)
