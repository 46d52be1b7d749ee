"""Canaries: a word that private rows hold, and the search for it in whatever form it may have.

The word has a letter beyond ASCII, so that its escaped forms differ from it. What is compressed or
a database is opened, as deep as such things lie in each other.
"""

import base64
import gzip
import io
import json
import re
import sqlite3
import tarfile
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORD = "kanar\N{LATIN SMALL LETTER U WITH DIAERESIS}zqx"
"""Written before each text of a delivery, with the name of its place."""

DEEPEST = 6


def canary(place: str) -> str:
    """What a text at that place of a delivery begins with."""
    return f"{WORD}-{place}"


def _base64_forms(data: bytes) -> Iterator[bytes]:
    """Of each alignment what the bytes around do not change."""
    for before in range(3):
        after = -(before + len(data)) % 3
        text = base64.b64encode(b"\0" * before + data + b"\0" * after)
        inner = text[4 if before else 0 : -4 if after else None]
        yield inner
        yield inner.replace(b"+", b"-").replace(b"/", b"_")


def _forms() -> list[bytes]:
    plain = WORD.encode()
    escaped = WORD.encode("unicode_escape").decode()
    texts = [
        json.dumps(WORD)[1:-1],
        json.dumps(json.dumps(WORD))[3:-3],
        escaped,
        escaped.replace("\\", "\\\\"),
        urllib.parse.quote(WORD),
        WORD.encode("ascii", "xmlcharrefreplace").decode(),
        WORD.replace("\N{LATIN SMALL LETTER U WITH DIAERESIS}", "&uuml;"),
        repr(plain)[2:-1],
        plain.hex(),
    ]
    forms = [WORD.encode(name) for name in ("utf-8", "latin-1", "utf-16-le", "utf-16-be")]
    forms += [text.encode() for text in texts]
    return [*dict.fromkeys([*forms, *_base64_forms(plain)])]


_PATTERN = re.compile(b"|".join(map(re.escape, _forms())), re.IGNORECASE)


def holds(data: bytes, depth: int = 0) -> bool:
    """Whether the word is in these bytes, or in what they are made of."""
    if _PATTERN.search(data):
        return True
    return depth < DEEPEST and any(holds(inner, depth + 1) for inner in _inside(data))


def holding(*folders: Path) -> list[Path]:
    """Files and folders with the word in their contents or their names."""
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if holds(str(path.relative_to(folder)).encode(errors="surrogateescape"))
        or (path.is_symlink() and holds(str(path.readlink()).encode()))
        or (path.is_file() and (holds(path.read_bytes()) or _in_database(path)))
    ]


def _inside(data: bytes) -> Iterator[bytes]:
    """What a container holds. One that only begins like a container holds nothing."""
    try:
        if data[257:262] == b"ustar":
            yield from _tar(data)
        for beginning, opened in _CONTAINERS.items():
            if data.startswith(beginning):
                yield from opened(data)
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, tarfile.TarError):
        return


def _tar(data: bytes) -> Iterator[bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for one in archive:
            file = archive.extractfile(one)
            yield one.name.encode()
            yield file.read() if file else b""


def _zip(data: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for one in archive.infolist():
            yield one.filename.encode()
            yield archive.read(one)


def _gzip(data: bytes) -> Iterator[bytes]:
    yield gzip.decompress(data)


def _zlib(data: bytes) -> Iterator[bytes]:
    if int.from_bytes(data[:2]) % 31 == 0:
        yield zlib.decompressobj().decompress(data)


def _zstd(data: bytes) -> Iterator[bytes]:
    import zstandard

    yield zstandard.ZstdDecompressor().decompressobj().decompress(data)


def _arrow(data: bytes) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pa.BufferReader(data)
    table: Any = (
        pq.read_table(source) if data.startswith(b"PAR1") else pa.ipc.open_file(source).read_all()
    )
    yield from _cells([table.to_pylist(), str(table.schema)])


_CONTAINERS: dict[bytes, Callable[[bytes], Iterator[bytes]]] = {
    b"\x1f\x8b": _gzip,
    b"PK\x03\x04": _zip,
    b"\x28\xb5\x2f\xfd": _zstd,
    b"PAR1": _arrow,
    b"ARROW1": _arrow,
    b"\x78": _zlib,
}


def _cells(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _cells(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _cells(one)
    elif value is not None:
        yield str(value).encode(errors="surrogatepass")


def _in_database(path: Path) -> bool:
    """Whether a SQLite database has the word in a cell, compressed perhaps."""
    with path.open("rb") as file:
        if not file.read(16).startswith(b"SQLite format 3"):
            return False
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
        return any(
            holds(cell, depth=1)
            for name in names
            if not name.startswith("sqlite_autoindex")
            for cell in _cells(_rows(database, name))
        )
    finally:
        database.close()


def _rows(database: sqlite3.Connection, name: str) -> list[Any]:
    try:
        return database.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608
    except sqlite3.OperationalError:  # an index is no table
        return []
