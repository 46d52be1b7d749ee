"""DICOM headers: read whatever the file's form, and little of it is passed on.

Only what `PASSED_ON` lists reaches an image's `meta`, and only as a short code or a number. Private
elements, names, dates and identifiers are never looked at.
"""

import io
import re
import zlib
from typing import TYPE_CHECKING, Any, cast

from factory.data.images import reasons
from factory.errors import BadRow

if TYPE_CHECKING:
    from pydicom import Dataset
    from pydicom.uid import UID

PASSED_ON = (
    "Modality",
    "BodyPartExamined",
    "ViewPosition",
    "Laterality",
    "ImageLaterality",
    "PhotometricInterpretation",
    "Rows",
    "Columns",
    "BitsStored",
)
"""Attributes that name no person and no place. Their keywords are the keys of `meta`."""

_CODE = re.compile(r"[A-Z0-9][A-Z0-9_ ]{0,15}")
"""A code string as DICOM writes it: nothing longer or otherwise written is passed on."""

_DEFLATED = "1.2.840.10008.1.2.1.99"
_INFLATED_PER_PIXEL = 16
"""Bytes that a deflated file may have for every pixel that is allowed: a bomb has more."""

_BEGINNINGS = (b"\x02\x00\x00\x00", b"\x02\x00\x02\x00", b"\x08\x00", b"\x00\x08\x00", b"\x00\x02")
"""How a file without preamble starts: with its file meta group or with group 8, in either order of
bytes."""


def read(data: bytes, max_pixels: int) -> "Dataset":
    """A data set with its pixel data, and with a transfer syntax.

    Raises:
        BadRow: it is no DICOM, cannot be read, or is larger than any image that is allowed.
    """
    if data[128:132] != b"DICM" and not data.startswith(_BEGINNINGS):
        raise BadRow(reasons.NOT_DICOM)
    read, reason = None, reasons.HEADER_DAMAGED
    try:
        read = _read(data, max_pixels)
    except BadRow as refused:
        reason = refused.reason
    except Exception:  # malformed in any way; what pydicom says quotes the file
        reason = reasons.HEADER_DAMAGED
    if read is None:
        raise BadRow(reason)
    return read


def passed_on(data: "Dataset") -> dict[str, str]:
    """What of the header may stand beside an image."""
    found = {keyword: _short(data, keyword) for keyword in PASSED_ON}
    return {keyword: value for keyword, value in found.items() if value}


def group(data: "Dataset", frame: int, name: str) -> "Dataset | None":
    """What an image of several frames says for one of them, or for all, under a name.

    Raises:
        BadRow: it cannot be read.
    """
    per_frame = _items(data, "PerFrameFunctionalGroupsSequence")
    shared = _items(data, "SharedFunctionalGroupsSequence")
    for groups in (per_frame[frame : frame + 1], shared[:1]):
        for one in groups:
            found = _items(one, name)
            if found:
                return found[0]
    return None


def _read(data: bytes, max_pixels: int) -> "Dataset":
    import pydicom
    from pydicom.dataset import FileMetaDataset
    from pydicom.filereader import read_preamble

    file = io.BytesIO(data)
    read_preamble(file, force=True)
    start = file.tell()
    if _DEFLATED.encode() in data[start : start + 1024]:
        _check_inflated(data, start, max_pixels * _INFLATED_PER_PIXEL)
    read = pydicom.dcmread(io.BytesIO(data), force=True)
    if "TransferSyntaxUID" not in getattr(read, "file_meta", {}):
        meta = FileMetaDataset()
        meta.TransferSyntaxUID = _as_written(read)
        read.file_meta = meta
    return read


def _as_written(data: "Dataset") -> "UID":
    """The transfer syntax of a file that does not say it: how its elements were found to be."""
    from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

    implicit, little = data.original_encoding
    if implicit:
        return ImplicitVRLittleEndian
    return ExplicitVRLittleEndian if little else ExplicitVRBigEndian


def _check_inflated(data: bytes, start: int, limit: int) -> None:
    """Refuse a data set that would fill the memory, before pydicom inflates it at once."""
    from pydicom.filereader import _read_file_meta_info  # pyright: ignore[reportPrivateUsage]

    file = io.BytesIO(data)
    file.seek(start)
    _read_file_meta_info(file)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    rest, total = data[file.tell() :], 0
    while rest and total <= limit:
        total += len(inflate.decompress(rest, 1 << 20))
        rest = inflate.unconsumed_tail
    if total > limit:
        raise BadRow(reasons.TOO_LARGE)


def _items(data: "Dataset", keyword: str) -> "list[Dataset]":
    found: Any = data.get(keyword)
    return list(cast("list[Dataset]", found)) if found else []


def _short(data: "Dataset", keyword: str) -> str:
    try:
        value: Any = data.get(keyword)
    except Exception:  # an element that cannot be read says nothing
        return ""
    if isinstance(value, int):
        return str(value)
    text = str(value or "").strip()
    return text if _CODE.fullmatch(text) else ""
