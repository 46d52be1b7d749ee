"""Glaive function calling, a sample: 300 conversations, most with functions to call (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.data.chat import sharegpt, tools
from factory.keys import public


def clean(row: Row) -> Sample:
    """A third declares no function: the assistant has to do without."""
    return Sample.conversation(
        id=row.id, messages=sharegpt.messages(row.record), tools=tools(row.record)
    )


glaive = Dataset(
    key=public("tools/glaive"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/hiyouga/LLaMA-Factory",
        revision="ff6d4d12eeb035d6ce06805a5733dd7b29f2ac30",
        rows="data/glaive_toolcall_en_demo.json",
    ),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    checks=[checks.rows(290, 300)],
)
