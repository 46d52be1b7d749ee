"""`Image`: one decoded and verified image, as a sample refers to it and as it is stored.

How bytes become one is in `decode`, `dicom` and `slides`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

type Format = Literal["png", "jpeg", "webp"]

EXTENSIONS: Mapping[str, str] = {"png": "png", "jpeg": "jpg", "webp": "webp"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image file that a decoder has read to its end. Equal bytes are the same image."""

    sha256: str
    """Hash of `data`: the image's name wherever it is stored."""

    data: bytes = field(repr=False, compare=False)
    format: Format = field(compare=False)
    width: int = field(compare=False)
    height: int = field(compare=False)

    mode: str = field(compare=False)
    """Pillow's name of the pixels that `data` decodes to: `L`, `LA`, `RGB`, `RGBA`, `CMYK`."""

    meta: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """What was done to it and what its header says; nothing that names a person."""

    @property
    def extension(self) -> str:
        """The ending of a file that holds `data`, without a dot."""
        return EXTENSIONS[self.format]


def content_hash(data: bytes) -> str:
    """The name of an image with these bytes."""
    return hashlib.sha256(data).hexdigest()
