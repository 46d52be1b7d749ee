"""Images of a partner: what the statement allows holds from the drop zone to the sample."""

from typing import Any

import numpy as np
import pytest

from factory.data import Dataset, Images, PartnerDrop, Row, Sample
from factory.data.images import allowed, reasons
from factory.data.steps import steps
from factory.keys import private
from tests.data.images.dicom_files import dicom, saved
from tests.deliveries import sign

pytestmark = pytest.mark.slow  # loads the recognizers of the scan

ULTRASOUND = np.arange(12, dtype=np.uint8).reshape(3, 4)


def clean(row: Row) -> Sample:
    return Sample.image_text(id=row.id, parts=[row.image, "A scan."])


def scans() -> Dataset:
    return Dataset(
        key=private("images/scans"),
        license="LicenseRef-test",
        source=PartnerDrop(folder="scans", rows="*.dcm//frame"),
        clean=clean,
        images=Images(),
    )


def test_an_image_that_the_statement_allows_becomes_a_sample(runner: Any, settings: Any) -> None:
    folder = settings.drops / "scans"
    folder.mkdir()
    element: dict[str, Any] = {"SOPInstanceUID": None, "Modality": "US"}
    (folder / "us.dcm").write_bytes(saved(dicom(ULTRASOUND, **element)))
    sign(folder, burned_in_allowed=["us.dcm"])
    raw, cleaned = (runner.checked(step)[0] for step in steps(scans())[:2])
    assert allowed.NAME in raw.manifest.files
    assert cleaned.manifest.rows == 1


def test_the_list_counts_in_the_version_and_not_in_the_files(runner: Any, settings: Any) -> None:
    folder = settings.drops / "scans"
    folder.mkdir()
    (folder / "ct.dcm").write_bytes(saved(dicom(ULTRASOUND, SOPInstanceUID=None)))
    sign(folder)
    without = runner.checked(steps(scans())[0])[0]
    assert allowed.NAME not in without.manifest.files
    sign(folder, burned_in_allowed=["ct.dcm"])
    again = runner.checked(steps(scans())[0])[0]
    assert again.id != without.id
    assert reasons.BURNED_IN not in str(again.manifest.facts)
