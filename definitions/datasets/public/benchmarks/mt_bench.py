"""MT-Bench: 80 conversations of two questions each, a third with reference answers (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """What a user asks in two turns. Nobody answers yet, so it is no conversation."""
    record = row.record
    asked = [(f"Turn {number}", text) for number, text in enumerate(record["turns"], 1)]
    answers = enumerate(record.get("reference", ()), 1)
    known = [(f"Reference {number}", text) for number, text in answers if text]
    category = row.text("category")
    return Sample.document(id=str(record["question_id"]), title=category, sections=asked + known)


mt_bench = Dataset(
    key=public("benchmarks/mt_bench"),
    role="benchmark",
    license="Apache-2.0",
    source=Git(
        url="https://github.com/lm-sys/FastChat",
        revision="0e6d3e4beaab66f4d3f93db72541a4abab8af28d",
        rows="fastchat/llm_judge/data/mt_bench/question.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(80, 80)],
)
