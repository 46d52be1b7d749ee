"""A delivered folder to a report: every row of every file, headers of images, names of files.

Files that the row pattern of the source names are read as rows, as `clean` will see them; all
others are read too, since they are delivered as well, by their format where it can be told. An
archive is read member by member. What cannot be read is a finding that blocks: an encrypted or
nested archive, a document format, a damaged file. Pixels are not read.
"""

import io
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from factory.data.identifiers.beside_packed import beside_packed
from factory.data.identifiers.contents import (
    ALL,
    MAXIMUM_BYTES,
    beside_pixels,
    decompressed,
    in_memory,
    is_image,
    is_readable,
    stream,
    texts,
)
from factory.data.identifiers.dicom import is_dicom, scan_dicom
from factory.data.identifiers.flatten import RowText, packed, row_text
from factory.data.identifiers.kinds import Kind
from factory.data.identifiers.report import Position, ScanReport, Thresholds, in_name, shown
from factory.data.identifiers.statement import Statement
from factory.data.identifiers.text import scan_text
from factory.data.pattern import Pattern, Rows, is_archive, stem
from factory.data.row import Row
from factory.errors import BadFile

if TYPE_CHECKING:
    from factory.data.formats.opened import Opened

STRUCTURED = ("xml", "jsonl", "json", "csv", "tsv", "parquet")

type Files = "Callable[[], Iterator[Opened]]"
"""Opens a file, or the members of an archive that are rows, from the beginning."""


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
    pattern = Pattern.parse(rows).records if rows is not None else None
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
        self._rows_before = 0
        """In an archive, rows are counted through all its members."""

    def rows(self, pattern: Pattern) -> None:
        """Row by row, as the source says, and what lies between the rows and beside them."""
        if is_dicom(self._path):
            self._dicom()
        elif pattern.format(pattern.members or self._name) in ("frame", "tile"):
            self.whole()
        else:
            self._beside_packed()
            self._guarded(lambda: self._structured(self._files(pattern)))
            if pattern.members is not None:
                self._guarded(lambda: self._members(but=pattern))

    def whole(self) -> None:
        """As what its name and its first bytes say that it is."""
        files = self._files(ALL)
        if is_dicom(self._path):
            self._dicom()
        elif is_archive(self._name):
            self._beside_packed()
            self._guarded(self._members)
        elif ALL.format(self._name) in STRUCTURED and is_readable(files):
            self._beside_packed()
            self._structured(files)
        elif self._path.stat().st_size > MAXIMUM_BYTES:
            self._unreadable(None)
        else:
            self._bytes(self._path.read_bytes(), self._name, None)

    def _files(self, pattern: Pattern) -> Files:
        from factory.data import reader  # not above: it parses, and declarations import thresholds

        return lambda: reader.files(self._folder, self._name, pattern, reader.Notes())

    def _guarded(self, read: Callable[[], None]) -> None:
        damaged = False
        try:
            read()
        except (BadFile, OSError):
            damaged = True
        if damaged:
            self._unreadable(None)

    def _structured(self, files: Files) -> None:
        """Rows with their numbers; in an archive, counted through its members."""
        from factory.data import reader

        before = 0
        for file in files():
            last = 0
            for row in reader.rows(file):
                last = row.position or 0
                self._row(row, None if row.position is None else before + last)
            before += last
        self._beside(files)

    def _beside(self, files: Files) -> None:
        from factory.data.identifiers.beside_rows import beside_rows, prologue

        for look in (beside_rows, prologue):
            for file in files():
                for text in look(file):
                    self._look(text, None)

    def _row(self, row: Row, number: int | None) -> None:
        if row.bad is not None:
            self._report.rows += 1
            self._unreadable(number)
        elif row.data is not None:
            self._bytes(row.data, stem(row.file)[0], number)
        else:
            self._text(row_text(row), number)
            for data in packed(row.json):
                self._bytes(data, "", number)

    def _members(self, but: Pattern | None = None) -> None:
        """The members of an archive as whole files, but for those that were read as rows."""
        from factory.data import reader
        from factory.data.formats import archives

        self._look(RowText("\n".join(archives.comments(self._path, self._name)), 0), None)
        ratio = (but or ALL).rows.max_ratio
        for number, one in enumerate(archives.members(self._path, self._name, ratio), start=1):
            if shown(one.name, number) != one.name:
                self._report.add(Position(self._label, None, None, Kind.RECORD_NUMBER, direct=True))
            self._look(RowText(one.said, 0), None)
            if but is None or not reader.wanted(one.name, but, reader.Notes()):
                self._member(one.stream.read(MAXIMUM_BYTES + 1), one.name)

    def _member(self, data: bytes, name: str) -> None:
        if len(data) > MAXIMUM_BYTES:
            self._unreadable(None)
        else:
            self._bytes(data, name, None)

    def _beside_packed(self) -> None:
        with self._path.open("rb") as file:
            self._packing(file, self._name, None)

    def _packing(self, packed: BufferedReader, name: str, row: int | None) -> None:
        """The name that a compressed file was given when it was packed, and what else is there."""
        inside = Path(name).stem
        for text, is_name in beside_packed(packed, name):
            if text is None:
                self._unreadable(row)
            elif not is_name:
                self._look(RowText(text.replace("_", " "), 0), row)
            elif text not in (inside, f"{inside}.tar"):  # else it is judged with the file's name
                for kind in sorted(in_name(text)):
                    self._report.add(Position(self._label, row, None, kind, direct=True))

    def _bytes(self, data: bytes, name: str, row: int | None) -> None:
        if stem(name)[1] is not None:
            self._packing(stream(data), name, row)
            inside = decompressed(data, name)
            if inside is None:
                self._unreadable(row)
            else:
                self._bytes(inside, stem(name)[0], row)
        elif data[128:132] == b"DICM":
            self._dicom(data)
        elif is_image(data, name):
            self._image(data, row)
        elif ALL.format(name) in STRUCTURED and is_readable(files := in_memory(data, name)):
            self._parts(files, row)
        else:
            for number, text in texts(data, name):
                self._text(text, number if row is None else row)

    def _parts(self, files: Files, row: int | None) -> None:
        """A structured file inside something else, whose rows have no numbers outside."""
        from factory.data import reader

        for file in files():
            for inner in reader.rows(file):
                self._row(inner, row)
        self._beside(files)

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

    def _image(self, data: bytes, row: int | None) -> None:
        """What is written beside the pixels: EXIF with the place it was taken, comments."""
        beside = beside_pixels(data)
        if beside is None:
            self._unreadable(row)
            return
        lines, located = beside
        if located:
            self._report.add(Position(self._label, row, None, Kind.ADDRESS, direct=True))
        self._text(RowText("\n".join(lines), 0), row)

    def _unreadable(self, row: int | None) -> None:
        self._report.add(Position(self._label, row, None, Kind.UNREADABLE, direct=True))
