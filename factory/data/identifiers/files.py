"""A delivered folder to a report: every row of every file, headers of images, names of files.

Files that the row pattern of the source names are read as rows, as `clean` will see them; all
others are read too, since they are delivered as well. What cannot be read is a finding that
blocks: an archive, a document format, a damaged file. Pixels are not read.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from factory.data.identifiers.dicom import is_dicom, scan_dicom
from factory.data.identifiers.flatten import RowText, decode, object_text, row_text
from factory.data.identifiers.kinds import Kind
from factory.data.identifiers.quiet import quiet
from factory.data.identifiers.report import Position, ScanReport, Thresholds, shown
from factory.data.identifiers.statement import Statement
from factory.data.identifiers.text import scan_text
from factory.data.pattern import Pattern, Rows
from factory.errors import BadFile

MAXIMUM_BYTES = 2**31
"""A file that is read whole may be so large; a larger one belongs into rows of a pattern."""

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".svs")


def scan_files(
    folder: Path,
    rows: str | Rows | None = None,
    *,
    statement: Statement,
    thresholds: Thresholds | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> ScanReport:
    """Look for identifiers in every listed file of a delivery.

    Args:
        folder: the delivery, verified; see `verify`.
        rows: the row pattern of the source, `**/*.jsonl`.
        statement: what was read from its `delivery.json`, which is not scanned itself.
        thresholds: how much of each kind may be there.
        progress: told about every file, without its contents.

    Raises:
        ScanFailed: a recognizer failed, so a text is unread.
        DeclarationError: `rows` is no row pattern.
    """
    report = ScanReport(
        surrogates=statement.pseudonymization.surrogates, thresholds=thresholds or Thresholds()
    )
    pattern = Pattern.parse(rows) if rows is not None else None
    matched = set(pattern.matching(statement.files)) if pattern else set[str]()
    for number, name in enumerate(sorted(statement.files), start=1):
        label = shown(name, number)
        if label != name:
            report.add(Position(label, None, None, Kind.RECORD_NUMBER, direct=True))
        report.files += 1
        progress(f"scanning {label}, {report.rows:,} rows read")
        one = _File(folder, name, label, report, statement)
        if pattern is not None and name in matched:
            one.rows(pattern)
        else:
            one.whole()
    return report


class _File:
    """One file being scanned into a report."""

    def __init__(
        self, folder: Path, name: str, label: str, report: ScanReport, statement: Statement
    ) -> None:
        self._folder = folder
        self._path = folder / name
        self._name = name
        self._label = label
        self._report = report
        self._burned_in_allowed = name in statement.burned_in_allowed
        self._prefix = statement.pseudonymization.pseudonym_prefix

    def rows(self, pattern: Pattern) -> None:
        """Row by row, as the source says, and what lies between the rows."""
        from lxml import etree

        from factory.data import reader
        from factory.data.identifiers.beside_rows import beside_rows

        if is_dicom(self._path):
            self._dicom()
            return
        damaged = False
        try:
            for row in reader.read(self._folder, [self._name], pattern, reader.Notes()):
                if row.data is not None:
                    self._bytes(row.data, self._name)
                else:
                    self._text(row_text(row), row.position)
            for number, text in beside_rows(self._path, pattern):
                self._look(text, number)
        except (BadFile, OSError, etree.XMLSyntaxError):
            damaged = True
        if damaged:
            self._unreadable(None)

    def whole(self) -> None:
        """As what its name and its first bytes say that it is."""
        if is_dicom(self._path):
            self._dicom()
        elif self._path.stat().st_size > MAXIMUM_BYTES:
            self._unreadable(None)
        else:
            self._bytes(self._path.read_bytes(), self._name)

    def _bytes(self, data: bytes, name: str) -> None:
        suffix = f".{name.lower().rpartition('.')[2]}"
        if suffix == ".gz":
            unpacked = _gunzip(data)
            if unpacked is None:
                self._unreadable(None)
            else:
                self._bytes(unpacked, name[: -len(suffix)])
        elif data[128:132] == b"DICM":
            self._dicom(data)
        elif suffix in IMAGES:
            self._image(data)
        else:
            for number, text in _texts(data, suffix):
                self._text(text, number)

    def _text(self, text: RowText, row: int | None) -> None:
        self._report.rows += 1
        self._look(text, row)

    def _look(self, text: RowText, row: int | None) -> None:
        self._report.characters += len(text.text)
        for one in scan_text(text.text, pseudonym_prefix=self._prefix):
            self._report.add(Position(self._label, row, one.start, one.kind, one.direct))
        for _ in range(text.unreadable):
            self._unreadable(row)

    def _dicom(self, data: bytes | None = None) -> None:
        self._report.rows += 1
        source = self._path if data is None else io.BytesIO(data)
        for one in scan_dicom(source, burned_in_allowed=self._burned_in_allowed):
            self._report.add(
                Position(self._label, None, one.start, one.kind, one.direct, one.tag or None)
            )

    def _image(self, data: bytes) -> None:
        """What is written beside the pixels: EXIF with the place it was taken, comments."""
        beside = _beside_pixels(data)
        if beside is None:
            self._unreadable(None)
            return
        lines, located = beside
        if located:
            self._report.add(Position(self._label, None, None, Kind.ADDRESS, direct=True))
        self._text(RowText("\n".join(lines), 0), None)

    def _unreadable(self, row: int | None) -> None:
        self._report.add(Position(self._label, row, None, Kind.UNREADABLE, direct=True))


def _texts(data: bytes, suffix: str) -> Iterator[tuple[int | None, RowText]]:
    """A file outside the pattern: JSON by value, everything else as the text that it is."""
    text = decode(data)
    if text is None:
        yield None, RowText("", 1)
    elif suffix in (".jsonl", ".ndjson"):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield number, _json(line)
    else:
        yield None, _json(text) if suffix == ".json" else RowText(text, 0)


def _json(text: str) -> RowText:
    """Its values, escapes resolved; what is no JSON is scanned as it stands."""
    try:
        return object_text(json.loads(text))
    except (ValueError, RecursionError):
        return RowText(text, 0)


def _gunzip(data: bytes) -> bytes | None:
    try:
        with gzip.open(io.BytesIO(data)) as file:
            unpacked = file.read(MAXIMUM_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        return None
    return unpacked if len(unpacked) <= MAXIMUM_BYTES else None


def _beside_pixels(data: bytes) -> tuple[list[str], bool] | None:
    """Texts in an image file, and whether it says where it was taken; none if it is damaged."""
    from PIL import ExifTags, Image

    try:
        with quiet(), Image.open(io.BytesIO(data)) as image:
            exif = image.getexif()
            values: list[Any] = [*image.info.values(), *exif.values()]
            values += exif.get_ifd(ExifTags.IFD.Exif).values()
            located = bool(exif.get_ifd(ExifTags.IFD.GPSInfo))
    except Exception:  # damaged in any way; what Pillow says may quote the file
        return None
    return [decode(one) or "" if isinstance(one, bytes) else str(one) for one in values], located
