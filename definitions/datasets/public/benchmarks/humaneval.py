"""HumanEval: 164 programming tasks with their solutions (Python)."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """A signature, what it should do, and a body."""
    text = row.text("text").strip()
    if not text:
        return Rejected("no text")
    return Sample.document(id=row.id, title="", sections=[("", text)])


humaneval = Dataset(
    key=public("benchmarks/humaneval"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/lm-sys/llm-decontaminator",
        revision="931834aa0990d9558a06c5d34daf4ad3852a72ae",
        rows="data/test/HumanEval.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(164, 164)],
)
