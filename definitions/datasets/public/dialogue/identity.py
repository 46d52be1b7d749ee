"""FastChat's identity conversations: who the assistant is, in 500 variations (English)."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.data.chat import sharegpt
from factory.keys import public


def clean(row: Row) -> Sample:
    """Names and phrases vary, so none is a duplicate by its words."""
    return Sample.conversation(id=row.text("id"), messages=sharegpt.messages(row.record))


identity = Dataset(
    key=public("dialogue/identity"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/lm-sys/FastChat",
        revision="0e6d3e4beaab66f4d3f93db72541a4abab8af28d",
        rows="data/dummy_conversation.json",
    ),
    clean=clean,
    checks=[checks.rows(500, 500)],
)
