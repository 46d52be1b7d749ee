"""Windows: the same stored values under every rule that turns them into brightness."""

import io
from typing import Any

import numpy as np
import PIL.Image
import pydicom
import pytest

from factory.data import Images
from factory.data.images import levels, reasons
from factory.data.images.dicom import Dicom
from factory.errors import BadRow
from tests.data.images.dicom_files import dicom, saved

VALUES = np.array([[-1000, 0, 40, 140, 240, 1000]], dtype=np.int16)


def shown(
    values: Any = VALUES, window: tuple[float, float] | None = None, frame: int = 0, **elements: Any
) -> tuple[list[int], dict[str, str]]:
    image = Dicom.read(saved(dicom(values, **elements)), Images(window=window)).image(frame)
    with PIL.Image.open(io.BytesIO(image.data)) as opened:
        return list(opened.tobytes()), dict(image.meta)


def test_the_window_of_the_header() -> None:
    found, meta = shown(WindowCenter=40, WindowWidth=400)
    assert found == [0, 102, 128, 192, 255, 255]
    assert (meta["window"], meta["window_from"]) == ("40/400", "header")


def test_the_declared_window_wins_and_the_first_of_several_counts() -> None:
    found, meta = shown(window=(140, 2), WindowCenter=[40, 600], WindowWidth=[400, 1600])
    assert found == [0, 0, 0, 255, 255, 255]
    assert (meta["window"], meta["window_from"]) == ("140/2", "declared")
    assert shown(WindowCenter=[40, 600], WindowWidth=[400, 1600])[1]["window"] == "40/400"


def test_a_window_of_one_step_is_a_threshold() -> None:
    assert shown(WindowCenter=40, WindowWidth=1)[0] == [0, 0, 255, 255, 255, 255]
    assert shown(window=(41, 1))[0] == [0, 0, 0, 255, 255, 255]


@pytest.mark.parametrize(
    ("function", "expected"),
    [("LINEAR_EXACT", [0, 102, 128, 191, 255, 255]), ("SIGMOID", [0, 102, 128, 186, 225, 255])],
)
def test_other_functions_of_the_header(function: str, expected: list[int]) -> None:
    found, _ = shown(WindowCenter=40, WindowWidth=400, VOILUTFunction=function)
    assert np.abs(np.array(found) - expected).max() <= 1


def test_a_window_is_in_rescaled_values() -> None:
    stored = (VALUES + 1024).astype(np.int16)
    found, _ = shown(
        stored, RescaleSlope=1, RescaleIntercept=-1024, WindowCenter=40, WindowWidth=400
    )
    assert found == shown(WindowCenter=40, WindowWidth=400)[0]


def test_monochrome1_is_inverted() -> None:
    elements: dict[str, Any] = {"WindowCenter": 40, "WindowWidth": 400}
    straight, _ = shown(**elements)
    inverted, meta = shown(PhotometricInterpretation="MONOCHROME1", **elements)
    assert np.abs(np.array(straight) + inverted - 255).max() <= 1
    assert meta["inverted"] == "MONOCHROME1"


def test_a_lookup_table_of_the_header() -> None:
    item = pydicom.Dataset()
    item.LUTDescriptor = [3, 0, 8]
    item["LUTDescriptor"].VR = "US"
    item.LUTData = [10, 200, 90]
    item["LUTData"].VR = "US"
    found, meta = shown(np.array([[0, 1, 2, 9]], np.uint16), VOILUTSequence=[item], WindowWidth=5)
    assert found == [10, 200, 90, 90]
    assert meta["window_from"] == "lookup table"


@pytest.mark.parametrize(
    "elements",
    [
        {},
        {"WindowCenter": 40},
        {"WindowCenter": 40, "WindowWidth": 0},
        {"WindowCenter": "", "WindowWidth": ""},
    ],
)
def test_without_a_window_percentiles_are_black_and_white(elements: dict[str, Any]) -> None:
    values = np.arange(1000, dtype=np.int16).reshape(10, 100)
    values[0, 0], values[9, 99] = -30_000, 30_000
    found, meta = shown(values, **elements)
    assert meta["window_from"] == "percentiles"
    assert meta["values"] == "5..994"
    assert found[0] == 0
    assert found[-1] == 255


def test_padding_has_no_say_in_percentiles() -> None:
    values = np.arange(1000, dtype=np.int16).reshape(10, 100)
    values[:5] = -2000
    _, meta = shown(values, PixelPaddingValue=-2000)
    assert meta["values"] == "502..997"
    assert shown(np.full((2, 2), -2000, np.int16), PixelPaddingValue=-2000)[0] == [0] * 4


def test_rare_values_are_not_cut_off_where_all_others_are_one() -> None:
    values = np.zeros((50, 50), np.int16)
    values[7, 7] = 300
    found, meta = shown(values)
    assert meta["window_from"] == "range of the values"
    assert max(found) == 255


def test_8_bits_stay_as_they_are() -> None:
    values = np.array([[3, 90, 200]], np.uint8)
    assert shown(values)[0] == [3, 90, 200]
    assert shown(values // 90, BitsStored=2, HighBit=1)[0] == [0, 85, 170]


def test_every_frame_has_the_window_of_its_own_group() -> None:
    groups: list[pydicom.Dataset] = []
    for centre in (40, 140):
        window, transform, group = pydicom.Dataset(), pydicom.Dataset(), pydicom.Dataset()
        window.WindowCenter, window.WindowWidth = centre, 2
        transform.RescaleSlope, transform.RescaleIntercept = 1, 0
        group.FrameVOILUTSequence = [window]
        group.PixelValueTransformationSequence = [transform]
        groups.append(group)
    both = np.stack([VALUES, VALUES])
    for frame, expected in enumerate(([0, 0, 255, 255, 255, 255], [0, 0, 0, 255, 255, 255])):
        found, meta = shown(both, frame=frame, PerFrameFunctionalGroupsSequence=groups)
        assert found == expected
        assert meta["frame"] == str(frame + 1)
    found, _ = shown(both, SharedFunctionalGroupsSequence=groups[:1])
    assert found == [0, 0, 255, 255, 255, 255]


def test_wide_and_fractional_values_take_the_same_curve() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-1000, 1000, (40, 50), dtype=np.int16)
    curve = levels.linear(-500, 500)
    expected = levels.to_bytes(values, curve)
    assert (levels.to_bytes(values.astype(np.float32), curve) == expected).all()
    wide = values.astype(np.int64)
    wide[0, 0] = 2**40
    assert (levels.to_bytes(wide, curve)[1:] == expected[1:]).all()


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(BadRow, match=reasons.NO_NUMBERS):
        levels.to_bytes(np.array([[1.0, np.nan]]), levels.linear(0, 1))
