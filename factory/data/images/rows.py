"""Rows out of images of several parts: frames of DICOM files, thumbnails and tiles of slides.

What a file gives is said by the element of the row pattern and never by the file's name: DICOM
files often have no ending. A part that cannot be used is a row as well, with the reason, so that
it is rejected and counted; a file that cannot be used is one such row.
"""

from collections.abc import Iterator
from pathlib import Path

from factory.data.images import reasons
from factory.data.images.dicom import Dicom
from factory.data.images.image import Image
from factory.data.images.policy import Images
from factory.data.images.slides import thumbnail, tiles
from factory.data.row import Row
from factory.errors import BadRow


def rows(file: Path | bytes, name: str, element: str, policy: Images | None) -> Iterator[Row]:
    """The rows of one file, in order.

    Args:
        file: the file, or its content; OpenSlide reads files only.
        name: its path inside the source: the row's `file`, and what `burned_in_allowed` lists.
        element: `frame`, `tile` or `thumbnail`.
        policy: what the dataset declares about images.
    """
    if policy is None:
        yield Row(name, None, bad=reasons.NO_POLICY)
        return
    try:
        for position, part in enumerate(_parts(file, name, element, policy), start=1):
            if isinstance(part, BadRow):
                yield Row(name, position, bad=part.reason)
            else:
                yield Row(name, position, picture=part, max_pixels=policy.max_pixels)
    except BadRow as refused:
        yield Row(name, None, bad=refused.reason)


def _parts(file: Path | bytes, name: str, element: str, policy: Images) -> Iterator[Image | BadRow]:
    if element == "frame":
        data = file.read_bytes() if isinstance(file, Path) else file
        return _frames(data, policy, name in policy.burned_in_allowed)
    if isinstance(file, bytes):
        raise BadRow(reasons.SLIDE_DAMAGED)
    if element == "thumbnail":
        return iter([thumbnail(file, policy)])
    return tiles(file, policy)


def _frames(data: bytes, policy: Images, allowed: bool) -> Iterator[Image | BadRow]:
    dicom = Dicom.read(data, policy, burned_in_allowed=allowed)
    for frame in range(dicom.count):
        try:
            yield dicom.image(frame)
        except BadRow as refused:
            yield refused
