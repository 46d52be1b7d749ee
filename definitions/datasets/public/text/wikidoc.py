"""WikiDoc patient information as questions and answers (5,942, English). Share-alike."""

from factory.data import Dataset, Git, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """The instruction is the same one in every row, so it says nothing and is left out."""
    return Sample.question(
        id=row.id, question=row.text("input").strip(), answer=row.text("output").strip()
    )


wikidoc = Dataset(
    key=public("text/wikidoc"),
    license="CC-BY-SA-3.0",
    source=Git(
        url="https://github.com/kbressem/medAlpaca",
        revision="63448c57967359ee04e6408ae418418ba0ac9f3a",
        rows="medical_meadow_small.json",
    ),
    clean=clean,
    checks=[checks.rows(5_900, 5_942)],
)
