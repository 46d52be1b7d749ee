"""C4, a sample of the cleaned web crawl (300 pages, English)."""

import hashlib

from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """The sample has no addresses, so a page is known by its text."""
    text = row.text("text").strip()
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Sample.document(id=name, title="", sections=[("", text)])


c4_sample = Dataset(
    key=public("text/c4_sample"),
    license="ODC-By-1.0",
    source=Git(
        url="https://github.com/hiyouga/LLaMA-Factory",
        revision="ff6d4d12eeb035d6ce06805a5733dd7b29f2ac30",
        rows="data/c4_demo.jsonl",
    ),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    checks=[checks.rows(290, 300)],
)
