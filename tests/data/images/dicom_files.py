"""DICOM files for tests, made with pydicom."""

import io
import warnings
from typing import Any

import numpy as np
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian

CT = "1.2.840.10008.5.1.4.1.1.2"


def dicom(values: Any, **elements: Any) -> FileDataset:
    """A greyscale or colour image with these stored values."""
    array = np.asarray(values)
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = UID(CT)
    meta.MediaStorageSOPInstanceUID = UID("1.2.3")
    data = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    bits = array.dtype.itemsize * 8
    data.SOPClassUID, data.SOPInstanceUID, data.Modality = CT, "1.2.3", "CT"
    colour = array.ndim >= 3 and array.shape[-1] == 3
    data.SamplesPerPixel = 3 if colour else 1
    data.PhotometricInterpretation = "RGB" if colour else "MONOCHROME2"
    if colour:
        data.PlanarConfiguration = 0
    frames = array if array.ndim == (4 if colour else 3) else array[None]
    if len(frames) > 1:
        data.NumberOfFrames = len(frames)
    data.Rows, data.Columns = frames.shape[1:3]
    data.BitsAllocated = data.BitsStored = bits
    data.HighBit = bits - 1
    data.PixelRepresentation = int(array.dtype.kind == "i")
    content = array.tobytes()
    data.PixelData = content + b"\0" * (len(content) % 2)
    data["PixelData"].VR = "OW" if bits > 8 else "OB"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in elements.items():
            setattr(data, name, value)
    return data


def saved(data: FileDataset) -> bytes:
    """As a file."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.save_as(file, enforce_file_format=True)
    return file.getvalue()
