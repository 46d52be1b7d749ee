"""DICOM headers: planted identifiers, what the header says of itself, and real malformed files."""

import io
import logging
import warnings
from pathlib import Path
from typing import Any

import pydicom
import pytest
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

from factory.data.identifiers.dicom import is_dicom, scan_dicom
from factory.data.identifiers.dicom_table import profile
from factory.data.identifiers.kinds import HeaderFinding, Kind

CT = "1.2.840.10008.5.1.4.1.1.2"
SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"


def image(**elements: Any) -> FileDataset:
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID = CT
    data.Modality = "CT"
    data.Rows = data.Columns = 1
    data.BitsAllocated = 8
    data.PixelData = b"\0\0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in elements.items():
            setattr(data, name, value)
    return data


def direct(data: Any, **options: Any) -> list[HeaderFinding]:
    return [one for one in scan_dicom(data, **options) if one.direct]


def test_the_table_is_the_profile() -> None:
    table = profile()
    assert len(table.removed) + len(table.replaced) > 600
    assert table.may_stand(0x0010, 0x0020)
    assert table.lists(0x0010, 0x1040)
    assert not table.may_stand(0x0010, 0x1040)
    assert table.lists(0x6002, 0x3000)
    assert not table.lists(0x0028, 0x0010)


@pytest.mark.parametrize(
    ("name", "value", "tag", "kind"),
    [
        ("PatientID", "00423178", "(0010,0020)", Kind.RECORD_NUMBER),
        ("PatientBirthDate", "19400305", "(0010,0030)", Kind.BIRTH_DATE),
        ("PatientAddress", "somewhere", "(0010,1040)", Kind.ADDRESS),
        ("PatientTelephoneNumbers", "none of these", "(0010,2154)", Kind.PHONE),
        ("AccessionNumber", "77120034", "(0008,0050)", Kind.RECORD_NUMBER),
        ("DeviceSerialNumber", "PJN22318", "(0018,1000)", Kind.DEVICE_NUMBER),
        ("StudyDescription", "for jane.roe@example.org", "(0008,1030)", Kind.EMAIL),
        ("ImageComments", "MRN: 00423178", "(0020,4000)", Kind.RECORD_NUMBER),
        ("ConvolutionKernel", "tel 440-976-1128", "(0018,1210)", Kind.PHONE),
    ],
)
def test_planted(name: str, value: str, tag: str, kind: Kind) -> None:
    assert direct(image()) == []
    found = direct(image(**{name: value}))
    assert [(one.tag, one.kind) for one in found] == [(tag, kind)]


def test_names_dates_and_uids_count() -> None:
    found = scan_dicom(
        image(
            PatientName="Roe^Jane",
            StudyDate="20190304",
            StudyInstanceUID="1.2.3",
            PatientAge="093Y",
        )
    )
    assert not any(one.direct for one in found)
    assert {one.kind for one in found} == {Kind.NAME, Kind.DATE, Kind.UID, Kind.CHARACTERISTIC}


def test_replaced_values_are_believed_where_the_header_says_how() -> None:
    data = image(PatientID="SUBJ-1", PatientAddress="somewhere", PatientIdentityRemoved="YES")
    assert {one.kind for one in direct(data)} == {Kind.RECORD_NUMBER, Kind.ADDRESS}
    data.DeidentificationMethod = "basic profile"
    assert {one.kind for one in direct(data)} == {Kind.ADDRESS}


def test_sequences_private_elements_meta_and_preamble() -> None:
    item = pydicom.Dataset()
    item.PatientID = "00423178"
    data = image(OtherPatientIDsSequence=[pydicom.Dataset(), item])
    data.private_block(0x0009, "MAKER", create=True).add_new(1, "LO", "jane.roe@example.org")
    data.file_meta.SourceApplicationEntityTitle = "172.16.193.2"
    data.preamble = b"MRN: 00423178".ljust(128, b"\0")
    assert {(one.tag, one.kind) for one in direct(data)} == {
        ("(0010,1002)[1].(0010,0020)", Kind.RECORD_NUMBER),
        ("(0009,1001)", Kind.PRIVATE_ELEMENT),
        ("(0009,1001)", Kind.EMAIL),
        ("(0002,0016)", Kind.NETWORK_ADDRESS),
        ("preamble", Kind.RECORD_NUMBER),
    }


@pytest.mark.parametrize(
    ("elements", "refused"),
    [
        ({}, False),
        ({"BurnedInAnnotation": "YES"}, True),
        ({"BurnedInAnnotation": "yes "}, True),
        ({"BurnedInAnnotation": "NO"}, False),
        *(({"Modality": one}, True) for one in ("US", "SC", "XA", "ES", "OT", "us")),
        ({"Modality": "US", "BurnedInAnnotation": "NO"}, False),
        ({"Modality": "US", "BurnedInAnnotation": ""}, True),
        ({"Modality": "US", "BurnedInAnnotation": "MAYBE"}, True),
        ({"SOPClassUID": SECONDARY_CAPTURE}, True),
        ({"SOPClassUID": f"{SECONDARY_CAPTURE}.4"}, True),
        ({"SOPClassUID": f"{SECONDARY_CAPTURE}7"}, False),
    ],
)
def test_burned_in_annotation(elements: dict[str, str], refused: bool) -> None:
    data = image(**elements)
    assert [one.kind for one in direct(data)] == [Kind.BURNED_IN] * refused
    assert direct(data, burned_in_allowed=True) == []
    del data.PixelData
    assert direct(data) == []


def test_no_warning_and_no_log_of_a_bad_header(
    caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    raw = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = image(PatientBirthDate="canary-1940", PatientAge="canary-age")
        data.is_little_endian = True
        pydicom.dcmwrite(raw, data, enforce_file_format=False)
    raw.seek(0)
    caplog.clear()
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = scan_dicom(raw)
    assert Kind.BIRTH_DATE in {one.kind for one in found}
    outputs = [repr(found), caplog.text, *capfd.readouterr(), *(str(one.message) for one in caught)]
    assert [one for one in outputs if "canary" in one] == []


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\0" * 128 + b"DICM", b"\0" * 128 + b"DICMgarbage"]
)
def test_damaged_files_are_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.dcm"
    path.write_bytes(content)
    assert [one.kind for one in direct(path)] == [Kind.UNREADABLE]


@pytest.mark.slow
def test_real_files(shared_data: Path) -> None:
    files = [one for one in (shared_data / "dicom_pydicom").rglob("*") if one.is_file()]
    headers = [one for one in files if is_dicom(one)]
    assert len(headers) >= 160
    found = {one.name: scan_dicom(one) for one in headers}
    assert any(one.kind is Kind.PRIVATE_ELEMENT for one in found["CT_small.dcm"])
    kinds = {one.kind for several in found.values() for one in several}
    assert {Kind.RECORD_NUMBER, Kind.BURNED_IN, Kind.NAME, Kind.UID} <= kinds
