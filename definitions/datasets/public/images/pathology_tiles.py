"""histolab's test tiles: stained tissue, pen marks and background, named by what they show."""

import re
from pathlib import PurePosixPath

from factory.data import Dataset, Git, Images, Row, Sample, checks
from factory.keys import public

PLACE = re.compile(r"(-level\d+)?(-\d+)*$")
"""Where on its slide a tile was cut: no part of what it shows."""


def clean(row: Row) -> Sample:
    """The file's name is the only label, and its first word the nearest to a slide's name."""
    shown = PLACE.sub("", PurePosixPath(row.file).stem)
    caption = shown.replace("-", " ")
    group = shown.partition("-")[0]
    return Sample.image_text(id=row.file, parts=[row.image, caption], group=group)


pathology_tiles = Dataset(
    key=public("images/pathology_tiles"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/histolab/histolab",
        revision="202a8bcac21054fbfc1f98e33867525eae8bdae4",
        rows="tests/fixtures/tiles/*.png",
    ),
    clean=clean,
    images=Images(),
    split={"train": 0.80, "validation": 0.20},
    checks=[checks.rows(30, 34)],
)
