"""Parts of a zip that are said to lie where no file has a place."""

import io
import struct
import zipfile
from typing import Any

import pytest

from factory.errors import BadFile


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "text")
    return buffer.getvalue()


@pytest.mark.parametrize("record", [0, 2**40, 2**63, 2**64 - 1])
def test_a_second_end_that_is_elsewhere_is_refused(make_source: Any, record: int) -> None:
    whole = zipped()
    end, directory = whole.index(b"PK\5\6"), whole.index(b"PK\1\2")
    sizes = (1, 1, end - directory, directory)
    second = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, *sizes)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, record, 1)
    data = whole[:end] + second + locator + whole[end:]
    source = make_source({"a.zip": data})
    with pytest.raises(BadFile, match="no second mark of its end"):
        source.rows("a.zip!*.txt")
