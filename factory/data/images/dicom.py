"""DICOM: each frame of a file to an image of 8 bits.

Header and rules are in `dicom_header` and `burned_in`, brightness is in `windows`. Besides codes
from the header, `meta` holds `frame` and `frames` where there are several, and `window`,
`window_from`, `values` and `inverted` as `windows` records them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from factory.data.images import codestream, dicom_header, levels, png, reasons, windows
from factory.data.images.burned_in import may_be_written_on
from factory.data.images.image import Image
from factory.data.images.mute import muted
from factory.data.images.policy import Images
from factory.errors import BadRow

if TYPE_CHECKING:
    from pydicom import Dataset

_PIXELS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_NEEDED = ("Rows", "Columns", "BitsAllocated", "SamplesPerPixel", "PhotometricInterpretation")
_RLE = "1.2.840.10008.1.2.5"
_LOSSY_12_BIT = "1.2.840.10008.1.2.4.51"


@dataclass(frozen=True)
class Dicom:
    """A file whose header was read and found to be usable."""

    data: "Dataset"
    policy: Images

    count: int
    """Frames that it has."""

    @staticmethod
    def read(data: bytes, policy: Images, *, burned_in_allowed: bool = False) -> "Dicom":
        """Read a file and see whether its frames may be used.

        Args:
            data: the file.
            policy: how large an image may be, and the window.
            burned_in_allowed: somebody looked at it: no person is named in its pixels.

        Raises:
            BadRow: it is no DICOM, has no pixels, is too large, may have a name written on it, or
                is damaged.
        """
        if not data:
            raise BadRow(reasons.EMPTY)
        with muted():
            read = dicom_header.read(data, policy.max_pixels)
            if not any(name in read for name in _PIXELS):
                raise BadRow(reasons.NO_PIXELS)
            count, reason = 0, reasons.HEADER_DAMAGED
            try:
                count = _frames(read, policy.max_pixels)
            except BadRow as refused:
                count, reason = 0, refused.reason
            except Exception:  # an element that is not what it should be
                count, reason = 0, reasons.HEADER_DAMAGED
            written_on = not burned_in_allowed and may_be_written_on(read)
        if not count or written_on:
            raise BadRow(reason if not count else reasons.BURNED_IN)
        return Dicom(read, policy, count)

    def image(self, frame: int) -> Image:
        """A frame, counted from 0.

        Raises:
            BadRow: it cannot be decoded.
        """
        with muted():
            try:
                return self._image(frame)
            except BadRow as refused:
                reason = refused.reason
            except NotImplementedError:
                reason = reasons.NO_CODEC
            except Exception:  # malformed in any way; what pydicom says quotes the file
                reason = reasons.PIXELS_DAMAGED
        raise BadRow(reason)

    def _image(self, frame: int) -> Image:
        from PIL import Image as Pixels

        values = self._values(frame)
        meta = {"original_format": "dicom"} | dicom_header.passed_on(self.data)
        if self.count > 1:
            meta |= {"frame": str(frame + 1), "frames": str(self.count)}
        if values.ndim == 2:
            curve, said = windows.curve(self.data, frame, values, self.policy.window)
        else:
            curve, said = _of_colour(self.data, values)
        return png.stored(Pixels.fromarray(levels.to_bytes(values, curve)), meta | said)

    def _values(self, frame: int) -> levels.Values:
        """Stored values, or red, green and blue."""
        from pydicom.pixels.processing import apply_color_lut
        from pydicom.pixels.utils import pixel_array

        syntax = self.data.file_meta.TransferSyntaxUID
        plugin = ""
        if syntax.is_encapsulated:
            plugin = "pydicom" if syntax == _RLE else "gdcm"  # never what happens to be installed
            self._check_frame(frame, syntax)
        values = np.asarray(pixel_array(self.data, index=frame, decoding_plugin=plugin))
        if self.data.PhotometricInterpretation == "PALETTE COLOR":
            values = np.asarray(apply_color_lut(values, self.data))[..., :3]
        return values

    def _check_frame(self, frame: int, syntax: str) -> None:
        """Refuse what the codec cannot do, and a stream that is another picture than was said."""
        from pydicom.encaps import get_frame
        from pydicom.pixels.decoders.base import get_decoder

        try:
            get_decoder(syntax)
        except NotImplementedError:
            raise BadRow(reasons.NO_CODEC) from None
        if syntax == _LOSSY_12_BIT and self.data.BitsStored > 8:
            raise BadRow(reasons.NO_CODEC)
        if syntax == _RLE:
            return
        stream = get_frame(self.data.PixelData, frame, number_of_frames=self.count)
        if codestream.size(stream) != (self.data.Columns, self.data.Rows):
            raise BadRow(reasons.PIXELS_DAMAGED)


def _frames(data: "Dataset", max_pixels: int) -> int:
    """How many frames a file has, once its header is seen to be complete and its size allowed."""
    from pydicom.pixels.utils import get_expected_length

    if any(data.get(name) in (None, "") for name in _NEEDED):
        raise BadRow(reasons.HEADER_DAMAGED)
    rows, columns = int(data.Rows), int(data.Columns)
    if not rows or not columns:
        raise BadRow(reasons.ZERO_SIZED)
    if rows * columns > max_pixels:
        raise BadRow(reasons.TOO_LARGE)
    count = int(data.get("NumberOfFrames") or 1)
    held = max(len(data.get(name) or b"") for name in _PIXELS)
    compressed = data.file_meta.TransferSyntaxUID.is_compressed and "PixelData" in data
    smallest = 8 * count if compressed else get_expected_length(data)
    if count < 1 or held < smallest:
        raise BadRow(reasons.TRUNCATED)
    return count


def _of_colour(data: "Dataset", values: levels.Values) -> tuple[levels.Curve, dict[str, str]]:
    """The whole range of the bits, so that colours keep their balance."""
    bits = int(data.BitsStored)
    if data.PhotometricInterpretation == "PALETTE COLOR":
        bits = int(data.RedPaletteColorLookupTableDescriptor[2])
    highest = 2**bits - 1
    said = {"values": f"0..{highest}"} if bits > 8 else {}
    return levels.linear(0, highest), said
