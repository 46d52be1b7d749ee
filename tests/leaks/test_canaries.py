"""The search for canaries finds them in each form in which a leak would have them."""

import base64
import gzip
import io
import json
import pickle
import sqlite3
import tarfile
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.leaks.canaries import canary, holding, holds

TEXT = f"before {canary('here')} after"
PLAIN = TEXT.encode()


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", data)
    return file.getvalue()


def tarred(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("inside")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def parquet(data: bytes) -> bytes:
    file = io.BytesIO()
    table = pa.table({"a": [data.decode()] * 3, "b": [[{"c": data}]] * 3})
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


FORMS: dict[str, bytes] = {
    "as it is": PLAIN,
    "latin 1": TEXT.encode("latin-1"),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16, big end first": TEXT.encode("utf-16-be"),
    "json": json.dumps(TEXT).encode(),
    "json in json": json.dumps({"a": json.dumps(TEXT)}).encode(),
    "escapes": repr(TEXT.encode()).encode(),
    "url": urllib.parse.quote(TEXT).encode(),
    "base64": base64.b64encode(PLAIN),
    "base64, second": base64.b64encode(b"x" + PLAIN),
    "base64, third": base64.urlsafe_b64encode(b"xx" + PLAIN),
    "hex": PLAIN.hex().encode(),
    "pickle": pickle.dumps({"a": TEXT}),
    "gzip": gzip.compress(PLAIN),
    "zlib": zlib.compress(PLAIN),
    "zip": zipped(PLAIN),
    "tar": tarred(PLAIN),
    "parquet": parquet(PLAIN),
    "gzip in zip": zipped(gzip.compress(PLAIN)),
    "zlib in tar": tarred(zlib.compress(json.dumps(TEXT).encode())),
}


@pytest.mark.parametrize("form", FORMS)
def test_found(tmp_path: Path, form: str) -> None:
    (tmp_path / "file").write_bytes(FORMS[form])
    assert holding(tmp_path) == [tmp_path / "file"]


@pytest.mark.parametrize("cell", [str, json.dumps, lambda text: zlib.compress(text.encode())])
def test_found_in_a_database(tmp_path: Path, cell: Callable[[str], object]) -> None:
    database = sqlite3.connect(tmp_path / "index.db")
    database.execute("CREATE TABLE events (body)")
    database.execute("INSERT INTO events VALUES (?)", (cell(TEXT),))
    database.commit()
    database.close()
    assert holding(tmp_path) == [tmp_path / "index.db"]


def test_found_in_names(tmp_path: Path) -> None:
    (tmp_path / canary("folder")).mkdir()
    assert len(holding(tmp_path)) == 1


def test_nothing_is_found_where_nothing_is() -> None:
    for data in (b"", b"canary", b"\x1f\x8bdamaged", b"PK\x03\x04damaged", b"\x78\x9cdamaged"):
        assert not holds(data)
