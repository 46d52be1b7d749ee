"""Wikipedia, a sample as one running text without the articles' borders (English). Share-alike."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """The borders are lost, so the file is one document."""
    return Sample.document(id=row.id, title="", sections=[("", row.string.strip())])


wikipedia_sample = Dataset(
    key=public("text/wikipedia_sample"),
    license="CC-BY-SA-3.0",
    source=Git(
        url="https://github.com/hiyouga/LLaMA-Factory",
        revision="ff6d4d12eeb035d6ce06805a5733dd7b29f2ac30",
        rows="data/wiki_demo.txt",
    ),
    clean=clean,
    split={"train": 1.0},
    checks=[checks.rows(1, 1)],
)
