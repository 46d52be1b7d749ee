"""Facts about the images of a version: how many, how large, of which kind; no pixel is read.

How images are stored is in `table`; where this is shown, in `factory.control.card`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MODALITY = "Modality"
"""The DICOM attribute that images carry in their `meta`."""


@dataclass(frozen=True)
class ImageFacts:
    """What is told of all images together."""

    count: int
    """Different images; one that two samples show is stored once."""

    narrowest: int
    widest: int
    lowest: int
    highest: int
    formats: Mapping[str, int]
    modes: Mapping[str, int]
    modalities: Mapping[str, int]
    """Empty where no image states one."""

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def image_facts(directory: Path) -> ImageFacts | None:
    """The facts of a table of images; None where there is none, or none in it."""
    if not any(directory.glob("*.parquet")):
        return None
    from factory.data import table

    read = table.read(directory, ["sha256", "format", "width", "height", "mode", "meta"])
    rows = {row["sha256"]: row for row in read.to_pylist()}.values()
    if not rows:
        return None
    widths = [int(row["width"]) for row in rows]
    heights = [int(row["height"]) for row in rows]
    stated = [dict(row["meta"]).get(MODALITY) for row in rows]
    return ImageFacts(
        count=len(rows),
        narrowest=min(widths),
        widest=max(widths),
        lowest=min(heights),
        highest=max(heights),
        formats=_counts(row["format"] for row in rows),
        modes=_counts(row["mode"] for row in rows),
        modalities=_counts(modality for modality in stated if modality),
    )


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
