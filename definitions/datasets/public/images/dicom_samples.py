"""pydicom's test files: CT, MR, X-ray, ultrasound, in all the ways in which DICOM is written."""

from factory.data import Dataset, Images, PythonPackage, Row, Sample, checks
from factory.keys import public

CAPTION = ("Modality", "BodyPartExamined", "ViewPosition")


def clean(row: Row) -> Sample:
    """The caption is what the header says of the picture. Frames of a file share a group."""
    image = row.image
    words = [image.meta[name] for name in CAPTION if name in image.meta]
    caption = " ".join(words) or "unknown modality"
    return Sample.image_text(id=row.id, parts=[image, caption], group=row.file)


dicom_samples = Dataset(
    key=public("images/dicom_samples"),
    license="MIT",
    source=PythonPackage(
        name="pydicom",
        version="3.0.2",
        sha256="abf971a5440f84dbaf42c4b6758e30e62480902584f8b270b9a5d146e278a07b",
        rows="pydicom/data/test_files/**//frame",
    ),
    clean=clean,
    images=Images(),
    split={"train": 0.80, "validation": 0.10, "test": 0.10},
    checks=[checks.rows(50, 400)],
)
