"""Burned-in annotation: whether somebody's name may be written in the pixels of a DICOM image.

The header is asked, since pixels are not read for writing. Both the scan of a delivery and the
step that cleans images go by this rule.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydicom import Dataset

OFTEN_WRITTEN_ON = frozenset({"US", "SC", "XA", "ES", "OT"})
"""Modalities whose images often have the patient's name in their pixels."""

_CLASSES = (
    "1.2.840.10008.5.1.4.1.1.7",  # secondary capture, all of its classes
    "1.2.840.10008.5.1.4.1.1.3",  # ultrasound, several frames
    "1.2.840.10008.5.1.4.1.1.6",  # ultrasound
    "1.2.840.10008.5.1.4.1.1.12",  # X-ray angiography
    "1.2.840.10008.5.1.4.1.1.77.1.1",  # endoscopy
)
"""Beginnings of the classes of these images: a modality may be missing or another one."""

_PIXELS = ("FloatPixelData", "DoubleFloatPixelData", "PixelData")


def may_be_written_on(data: "Dataset") -> bool:
    """Whether the header says so, or is silent about an image of a kind that often is.

    An image that says neither what it is nor that nothing is written on it counts as one of these.
    """
    if not any(name in data for name in _PIXELS):
        return False
    said = _plain(data, "BurnedInAnnotation").upper()
    if said in ("YES", "NO"):
        return said == "YES"
    modality, kind = _plain(data, "Modality").upper(), _plain(data, "SOPClassUID")
    known = bool(modality or kind)
    often = f"{kind}.".startswith(tuple(f"{one}." for one in _CLASSES))
    return not known or often or modality in OFTEN_WRITTEN_ON


def _plain(data: "Dataset", keyword: str) -> str:
    try:
        value: Any = data.get(keyword)
    except Exception:  # an element that cannot be read says nothing
        return ""
    return "" if value is None else str(value).strip()
