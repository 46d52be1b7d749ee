"""Self-Instruct seed tasks: 175 instructions with one worked instance each (English)."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Each task has one instance: an input, which may be empty, and the output wanted."""
    (instance,) = row.record["instances"]
    answer = instance["output"].strip()
    if not answer:
        return Rejected("no output")
    asked = (row.text("instruction").strip(), instance["input"].strip())
    question = "\n\n".join(part for part in asked if part)
    return Sample.question(id=row.text("id"), question=question, answer=answer)


self_instruct_seed = Dataset(
    key=public("instructions/self_instruct_seed"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/yizhongw/self-instruct",
        revision="0b26ccaa415992100fa32df62d41b994cf928e23",
        rows="data/seed_tasks.jsonl",
    ),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    checks=[checks.rows(170, 175)],
)
