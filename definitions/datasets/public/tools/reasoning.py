"""Tool use with reasoning, a sample: 50 conversations, reasoning before each call (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.data.chat import openai, tools
from factory.keys import public


def clean(row: Row) -> Sample:
    """Contents are lists of typed parts: text, reasoning, calls."""
    messages = openai.messages(row.record, reasoning="think")
    return Sample.conversation(id=row.id, messages=messages, tools=tools(row.record))


reasoning = Dataset(
    key=public("tools/reasoning"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/hiyouga/LLaMA-Factory",
        revision="ff6d4d12eeb035d6ce06805a5733dd7b29f2ac30",
        rows="data/reason_tool_use_demo_50.jsonl",
    ),
    clean=clean,
    split={"train": 0.80, "validation": 0.10, "test": 0.10},
    checks=[checks.rows(45, 50)],
)
