"""DICOM: real files of every kind, damaged ones, and what reaches an image of what they say."""

import gzip
import io
import json
import struct
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pydicom
import pytest
from pydicom.encaps import encapsulate
from pydicom.uid import DeflatedExplicitVRLittleEndian, JPEG2000Lossless, JPEGBaseline8Bit

from factory.data import Image, Images
from factory.data.images import reasons
from factory.data.images.dicom import Dicom
from factory.errors import BadRow
from tests.data.images.dicom_files import dicom, saved

CANARY = "canary-4711"
GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


def images(data: bytes, policy: Images | None = None, *, allowed: bool = False) -> list[Image]:
    read = Dicom.read(data, policy or Images(), burned_in_allowed=allowed)
    return [read.image(frame) for frame in range(read.count)]


def shades(image: Image) -> Any:
    with PIL.Image.open(io.BytesIO(image.data)) as opened:
        return np.asarray(opened)


def reason(data: bytes, policy: Images | None = None, *, allowed: bool = False) -> str:
    with pytest.raises(BadRow) as caught:
        images(data, policy, allowed=allowed)
    assert caught.value.__context__ is None
    return caught.value.reason


def real(folder: Path) -> dict[str, bytes]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def outcomes(files: dict[str, bytes], *, allowed: bool) -> dict[str, str]:
    found = dict[str, str]()
    for name, data in files.items():
        try:
            images(data, allowed=allowed)
            found[name] = "images"
        except BadRow as refused:
            found[name] = refused.reason
    return found


def test_every_sample_file(shared_data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = real(shared_data / "dicom_pydicom")
    files["zipMR"] = gzip.decompress(files.pop("zipMR.gz"))
    found = outcomes(files, allowed=True)
    assert Counter(found.values()) == {
        "images": 87,
        reasons.NO_PIXELS: 70,
        reasons.NOT_DICOM: 9,
        reasons.HEADER_DAMAGED: 3,
        reasons.NO_CODEC: 2,
        reasons.PIXELS_DAMAGED: 1,
        reasons.TRUNCATED: 1,
    }
    silent = ("images", reasons.NO_PIXELS, reasons.NOT_DICOM)
    assert {name: why for name, why in found.items() if why not in silent} == {
        "badVR.dcm": reasons.HEADER_DAMAGED,  # 1A frames
        "meta_missing_tsyntax.dcm": reasons.HEADER_DAMAGED,  # pixels without a size
        "nested_priv_SQ.dcm": reasons.HEADER_DAMAGED,  # the same
        "JPEG-lossy.dcm": reasons.NO_CODEC,  # lossy JPEG of 12 bits
        "JPGExtended.dcm": reasons.NO_CODEC,
        "JPEG2000-embedded-sequence-delimiter.dcm": reasons.PIXELS_DAMAGED,
        "MR_truncated.dcm": reasons.TRUNCATED,
    }
    assert capfd.readouterr() == ("", "")


def test_sample_files_that_may_be_written_on_are_refused(shared_data: Path) -> None:
    files = real(shared_data / "dicom_pydicom")
    found = outcomes(files, allowed=False)
    written_on = {name for name, why in found.items() if why == reasons.BURNED_IN}
    assert len(written_on) == 39
    assert {"examples_rgb_color.dcm", "SC_rgb_rle.dcm", "image_dfl.dcm"} <= written_on
    assert found["CT_small.dcm"] == "images"


def test_files_that_pydicom_alone_does_not_read(shared_data: Path) -> None:
    truth = json.loads((shared_data / "ground_truth" / "overlaps.json").read_text())["images"]
    unread = set[str]()
    for name, data in real(shared_data / "dicom_pydicom").items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pydicom.dcmread(io.BytesIO(data))
        except pydicom.errors.InvalidDicomError:
            unread.add(f"dicom_pydicom/{name}")
    others = {f"dicom_pydicom/{name}" for name in ("README.txt", "test1.json", "test_PN.json")}
    others |= {"dicom_pydicom/dicomdirtests/README.txt"}
    assert unread - others == set(truth["fail_plain_dcmread"])
    ours = outcomes({name: (shared_data / name).read_bytes() for name in unread}, allowed=True)
    assert {name for name, why in ours.items() if why == reasons.NO_PIXELS} == {
        "dicom_pydicom/rtstruct.dcm",
        "dicom_pydicom/ExplVR_LitEndNoMeta.dcm",
        "dicom_pydicom/ExplVR_BigEndNoMeta.dcm",
    }
    assert set(ours.values()) == {reasons.NO_PIXELS, reasons.NOT_DICOM}


def test_one_picture_in_every_syntax_is_one_image(shared_data: Path) -> None:
    names = ("MR_small", "MR_small_RLE", "MR_small_bigendian", "MR_small_expb", "MR_small_implicit")
    names += ("MR_small_jp2klossless", "MR_small_jpeg_ls_lossless", "MR_small_padded")
    folder = shared_data / "dicom_pydicom"
    found = [images((folder / f"{name}.dcm").read_bytes())[0] for name in names]
    assert len({image.sha256 for image in found}) == 1


@pytest.mark.parametrize("name", ["CT_small", "MR_small_bigendian", "MR_small_implicit"])
def test_without_preamble_and_meta_it_is_the_same_image(shared_data: Path, name: str) -> None:
    data = (shared_data / "dicom_pydicom" / f"{name}.dcm").read_bytes()
    (length,) = struct.unpack_from("<I", data, 140)
    bare = data[144 + length :]
    assert images(bare) == images(data)
    assert images(data[128 + 4 :]) == images(data)


def test_a_dose_of_several_frames_gives_an_image_each(shared_data: Path) -> None:
    found = images((shared_data / "dicom_pydicom" / "rtdose.dcm").read_bytes())
    assert [image.meta["frame"] for image in found] == [str(n) for n in range(1, 16)]
    assert {image.meta["frames"] for image in found} == {"15"}
    assert len({image.sha256 for image in found}) > 10


def test_only_codes_and_numbers_of_the_header_are_passed_on() -> None:
    data = dicom(
        GREY,
        PatientName=CANARY,
        PatientID=CANARY,
        StudyDescription=CANARY,
        InstitutionName=CANARY,
        ImageComments=CANARY,
        BodyPartExamined="CHEST",
        ViewPosition=f"{CANARY} is not a code",
    )
    data.private_block(0x0009, CANARY, create=True).add_new(1, "LO", CANARY)
    file = saved(data)
    (image,) = images(file)
    assert CANARY.encode() in file
    assert CANARY not in f"{dict(image.meta)}"
    assert CANARY.encode() not in image.data
    assert image.meta == {
        "original_format": "dicom",
        "Modality": "CT",
        "BodyPartExamined": "CHEST",
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": "3",
        "Columns": "4",
        "BitsStored": "8",
        "values": "0..255",
        "window_from": "range of the bits",
    }


@pytest.mark.parametrize(
    ("elements", "refused"),
    [
        ({}, False),
        ({"BurnedInAnnotation": "YES"}, True),
        ({"BurnedInAnnotation": "NO"}, False),
        ({"Modality": "US"}, True),
        ({"Modality": "US", "BurnedInAnnotation": "NO"}, False),
        ({"Modality": "ES", "BurnedInAnnotation": ""}, True),
        ({"Modality": "", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.6.1"}, True),
        ({"Modality": "CT", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.7.2"}, True),
        ({"Modality": "", "SOPClassUID": ""}, True),
        ({"Modality": "MR", "SOPClassUID": ""}, False),
    ],
)
def test_burned_in_annotation(elements: dict[str, str], refused: bool) -> None:
    data = saved(dicom(GREY, **elements))
    if refused:
        assert reason(data) == reasons.BURNED_IN
    else:
        assert len(images(data)) == 1
    assert len(images(data, allowed=True)) == 1


def test_colours_keep_their_balance() -> None:
    colour = np.array([[[0, 100, 200], [1, 2, 3]]], dtype=np.uint8)
    (image,) = images(saved(dicom(colour)))
    assert image.mode == "RGB"
    assert shades(image).tolist() == colour.tolist()
    (wide,) = images(saved(dicom(colour.astype(np.uint16) * 257)))
    assert shades(wide).tolist() == colour.tolist()
    assert wide.meta["values"] == "0..65535"


def test_a_palette_becomes_its_colours() -> None:
    table = [bytes([0, 10, 20, 30]), bytes([1, 11, 21, 31]), bytes([2, 12, 22, 32])]
    elements: dict[str, Any] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for name, lut in zip(("Red", "Green", "Blue"), table, strict=True):
        elements[f"{name}PaletteColorLookupTableDescriptor"] = [4, 0, 8]
        elements[f"{name}PaletteColorLookupTableData"] = lut
    (image,) = images(saved(dicom(np.array([[0, 1], [2, 3]], np.uint8), **elements)))
    assert shades(image).tolist() == [[[0, 1, 2], [10, 11, 12]], [[20, 21, 22], [30, 31, 32]]]


def test_a_header_that_claims_too_much_is_refused_before_decoding() -> None:
    data = dicom(GREY)
    data.Rows = data.Columns = 60_000
    assert reason(saved(data)) == reasons.TOO_LARGE
    assert reason(saved(dicom(GREY)), Images(max_pixels=11)) == reasons.TOO_LARGE
    assert len(images(saved(dicom(GREY)), Images(max_pixels=12))) == 1


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ({"NumberOfFrames": 10**9}, reasons.TRUNCATED),
        ({"NumberOfFrames": -1}, reasons.TRUNCATED),
        ({"Rows": 0}, reasons.ZERO_SIZED),
        ({"PixelData": b"\0" * 10}, reasons.TRUNCATED),
        ({"PixelData": b""}, reasons.TRUNCATED),
        ({"Rows": None}, reasons.HEADER_DAMAGED),
        ({"PhotometricInterpretation": None}, reasons.HEADER_DAMAGED),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, reasons.PIXELS_DAMAGED),
        ({"BitsAllocated": 12}, reasons.PIXELS_DAMAGED),
    ],
)
def test_headers_that_cannot_be(elements: dict[str, Any], expected: str) -> None:
    assert reason(saved(dicom(GREY, **elements))) == expected


def test_no_pixels_no_file_and_no_dicom() -> None:
    data = dicom(GREY)
    del data.PixelData
    assert reason(saved(data)) == reasons.NO_PIXELS
    assert reason(b"") == reasons.EMPTY
    assert reason(b"<html>") == reasons.NOT_DICOM
    assert reason(b"\0" * 128 + b"DICM") == reasons.NO_PIXELS


def test_a_cut_file_or_a_broken_sequence_gives_a_reason() -> None:
    item = pydicom.Dataset()
    item.CodeValue = "1234567"
    data = saved(dicom(GREY, ProcedureCodeSequence=[item]))
    whole = images(data)
    cuts = {f"{length}": data[:length] for length in range(0, len(data), 7)}
    found = outcomes(cuts | {"whole": data}, allowed=False)
    known = {value for name, value in vars(reasons).items() if name.isupper()}
    assert set(found.values()) <= {"images"} | known
    read = [name for name, why in found.items() if why == "images"]
    assert all(images(cuts.get(name, data)) == whole for name in read)
    assert len(read) <= 2
    place = data.index(b"SQ\0\0") + 4
    broken = data[:place] + b"\xfe\xff\xff\x7f" + data[place + 4 :]
    assert reason(broken) in (reasons.HEADER_DAMAGED, reasons.NO_PIXELS)


def test_a_stream_of_another_size_than_the_header_is_not_decoded() -> None:
    file = io.BytesIO()
    PIL.Image.new("L", (64, 64)).save(file, "JPEG")
    data = dicom(GREY)
    data.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    data.PixelData = encapsulate([file.getvalue()])
    data["PixelData"].is_undefined_length = True
    assert reason(saved(data)) == reasons.PIXELS_DAMAGED
    data.Rows = data.Columns = 64
    assert len(images(saved(data))) == 1
    data.file_meta.TransferSyntaxUID = JPEG2000Lossless
    data.PixelData = encapsulate([b"\xff\x4f\xff\x51" + b"\xff" * 40])
    assert reason(saved(data)) == reasons.PIXELS_DAMAGED


def test_a_syntax_without_codec_says_so() -> None:
    data = dicom(GREY)
    data.file_meta.TransferSyntaxUID = pydicom.uid.MPEG2MPML
    data.PixelData = encapsulate([b"\0" * 100])
    data["PixelData"].is_undefined_length = True
    assert reason(saved(data)) == reasons.NO_CODEC


def test_a_deflated_bomb_is_not_inflated() -> None:
    data = dicom(GREY)
    data.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    good = saved(data)
    assert len(images(good)) == 1
    (length,) = struct.unpack_from("<I", good, 140)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    zeros = b"\0" * 2**20
    body = b"".join(packer.compress(zeros) for _ in range(64)) + packer.flush()
    assert reason(good[: 144 + length] + body, Images(max_pixels=2**20)) == reasons.TOO_LARGE
