"""MMLU test questions of three subjects in other words, and in Chinese."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Row i of a file rephrases row i of its subject's test part; some were left empty."""
    text = row.text("text").strip()
    if not text:
        return Rejected("not rephrased")
    meta = {"form": row.text("language")}
    return Sample.document(id=row.id, title="", sections=[("", text)], meta=meta)


rephrased_mmlu = Dataset(
    key=public("benchmarks/rephrased_mmlu"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/lm-sys/llm-decontaminator",
        revision="931834aa0990d9558a06c5d34daf4ad3852a72ae",
        rows="data/rephrase/*_test_*.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(1_450, 1_515)],
)
