"""Windows: which stored values of a greyscale DICOM frame become black and which white.

In this order: the window that the dataset declares; the lookup table or window of the header, of
the frame itself first; for images of at most 8 bits the whole range; else from the 0.5th to the
99.5th percentile, padding left out. What was used is returned as `meta` records it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from factory.data.images import levels
from factory.data.images.dicom_header import group

if TYPE_CHECKING:
    from pydicom import Dataset

type Said = dict[str, str]

_PERCENTILES = (0.005, 0.995)


def curve(
    data: "Dataset", frame: int, values: levels.Values, declared: tuple[float, float] | None
) -> tuple[levels.Curve, Said]:
    """Stored values to brightness, and what to record of it."""
    from pydicom.pixels.processing import apply_modality_lut

    rescaled_by = group(data, frame, "PixelValueTransformationSequence") or data

    def rescaled(stored: levels.Values) -> levels.Values:
        return np.asarray(apply_modality_lut(stored, rescaled_by))

    shown, said = _shown(data, frame, declared) or _shown_without(data, values, rescaled)
    inverted = data.PhotometricInterpretation == "MONOCHROME1"
    if inverted:
        said["inverted"] = "MONOCHROME1"

    def through(stored: levels.Values) -> npt.NDArray[np.float64]:
        brightness = shown(rescaled(stored)).clip(0, 255)
        return 255 - brightness if inverted else brightness

    return through, said


def _shown(
    data: "Dataset", frame: int, declared: tuple[float, float] | None
) -> tuple[levels.Curve, Said] | None:
    """By the declared window, or by what the header says."""
    if declared is not None:
        return _linear(*declared), _window(*declared, "declared")
    by = group(data, frame, "FrameVOILUTSequence") or data
    if by.get("VOILUTSequence"):
        return _table(by), {"window_from": "lookup table"}
    centre, width = _first(by, "WindowCenter"), _first(by, "WindowWidth")
    if centre is None or width is None or width <= 0:
        return None
    function = str(by.get("VOILUTFunction") or "LINEAR").upper()
    kinds: dict[str, Callable[[float, float], levels.Curve]] = {
        "SIGMOID": _sigmoid,
        "LINEAR_EXACT": _exact,
    }
    return kinds.get(function, _linear)(centre, width), _window(centre, width, "header")


def _shown_without(
    data: "Dataset", values: levels.Values, rescaled: Callable[[levels.Values], levels.Values]
) -> tuple[levels.Curve, Said]:
    """By the range of the values."""
    bits, is_signed = int(data.BitsStored), bool(data.get("PixelRepresentation"))
    if bits <= 8 and not is_signed and values.dtype.kind != "f":
        ends, how = np.array([0, 2**bits - 1]), "range of the bits"
    else:
        inside = _without_padding(data, values)
        ends, how = np.quantile(inside, _PERCENTILES, method="nearest"), "percentiles"
        if ends[0] == ends[1]:
            ends, how = np.array([inside.min(), inside.max()]), "range of the values"
    low, high = sorted(float(one) for one in rescaled(ends))
    return levels.linear(low, high), {"values": f"{low:g}..{high:g}", "window_from": how}


def _without_padding(data: "Dataset", values: levels.Values) -> levels.Values:
    padding = _first(data, "PixelPaddingValue")
    if padding is None:
        return values
    limit = _first(data, "PixelPaddingRangeLimit")
    low, high = sorted((padding, padding if limit is None else limit))
    inside = values[(values < low) | (values > high)]
    return inside if inside.size else values


def _window(centre: float, width: float, source: str) -> Said:
    return {"window": f"{centre:g}/{width:g}", "window_from": source}


def _linear(centre: float, width: float) -> levels.Curve:
    """As DICOM defines it: a width of 2 is one step."""
    return levels.linear(centre - 0.5 - (width - 1) / 2, centre - 0.5 + max(width - 1, 1e-9) / 2)


def _exact(centre: float, width: float) -> levels.Curve:
    return levels.linear(centre - width / 2, centre + width / 2)


def _sigmoid(centre: float, width: float) -> levels.Curve:
    def curve(values: levels.Values) -> npt.NDArray[np.float64]:
        steps = -4 * (values.astype(np.float64) - centre) / width
        return 255 / (1 + np.exp(steps.clip(-60, 60)))

    return curve


def _table(by: "Dataset") -> levels.Curve:
    from pydicom.pixels.processing import apply_voi

    bits = int(by.VOILUTSequence[0].LUTDescriptor[2])

    def curve(values: levels.Values) -> npt.NDArray[np.float64]:
        whole = np.rint(values).astype(np.int64)
        return np.asarray(apply_voi(whole, by)).astype(np.float64) / (2**bits - 1) * 255

    return curve


def _first(data: "Dataset", keyword: str) -> float | None:
    """The first of one or several numbers: others are alternatives to it."""
    value: Any = data.get(keyword)
    if value is None or value == "":
        return None
    first = value if isinstance(value, int | float) else cast(list[Any], value)[0]
    return float(first)
