"""MT-Bench: 80 conversations of two questions each, a third with reference answers (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.data.kinds import Message
from factory.keys import public


def clean(row: Row) -> Sample:
    """The two questions as a user's turns; a model under test answers each."""
    record = row.record
    turns = [Message.of("user", text) for text in record["turns"]]
    references = {f"reference {n}": text for n, text in enumerate(record.get("reference", ()), 1)}
    meta = {"category": row.text("category"), **references}
    return Sample.conversation(id=str(record["question_id"]), messages=turns, meta=meta)


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
