"""`Images`: what a dataset with images declares about them.

Apart from the modules that decode: a declaration loads neither Pillow nor pydicom nor OpenSlide.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from factory.errors import DeclarationError


@dataclass(frozen=True, kw_only=True, slots=True)
class Images:
    """How large an image may be, and how DICOM and slides become images.

    The defaults suit a set of ordinary pictures; a set of DICOM files or slides says more.
    """

    max_pixels: int = 50_000_000
    """Width times height; a larger image is refused before it is decoded. The largest common
    radiographs, mammograms, have about 20 million."""

    window: tuple[float, float] | None = None
    """Centre and width for every greyscale DICOM frame, in the values that its rescale gives
    (Hounsfield units in CT): (40, 400) is soft tissue. None takes the window of the header."""

    burned_in_allowed: Sequence[str] = ()
    """Paths of DICOM files that somebody looked at: nothing in their pixels names a person. A
    partner lists them in the statement of a delivery instead."""

    thumbnail: int = 1024
    """Longest side of a slide's thumbnail."""

    tile: int = 512
    """Side of a slide's tiles."""

    level: int = 0
    """Which of a slide's resolutions tiles are cut from: 0 is the finest."""

    min_tissue: float = 0.1
    """Share of a tile's pixels that must show tissue; other tiles are rejected as background."""

    def __post_init__(self) -> None:
        whole = {"max_pixels": 1, "thumbnail": 16, "tile": 16, "level": 0}
        for name, lowest in whole.items():
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise DeclarationError(
                    f"images: {name} is {value!r}; write a whole number from {lowest} on."
                )
        if not 0 <= self.min_tissue <= 1:
            raise DeclarationError(
                f"images: min_tissue is {self.min_tissue!r}; write a share between 0 and 1."
            )
        _check_window(self.window)
        _check_paths(self.burned_in_allowed)

    def as_dict(self) -> dict[str, Any]:
        """The policy as JSON, for the parameters of a step."""
        window = list(self.window) if self.window is not None else None
        allowed = sorted(self.burned_in_allowed)
        return asdict(self) | {"window": window, "burned_in_allowed": allowed}


def _check_window(window: object) -> None:
    if window is None:
        return
    match window:
        case (int() | float() as centre, int() | float() as width):
            right = math.isfinite(centre) and math.isfinite(width) and width >= 1
        case _:
            right = False
    if not right:
        raise DeclarationError(
            f"images: window is {window!r}; write (centre, width) with a width of at least 1, "
            "or None for the window that each header gives."
        )


def _check_paths(paths: object) -> None:
    if isinstance(paths, str) or not isinstance(paths, Sequence):
        raise DeclarationError(
            f"images: burned_in_allowed is {paths!r}; write a list of paths inside the source."
        )
