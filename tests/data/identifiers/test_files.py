"""Whole deliveries: counts, positions, what blocks, what cannot be read, and canaries nowhere."""

import base64
import gzip
import io
import json
import logging
import random
import tarfile
import traceback
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from PIL import Image

from factory.data.identifiers import text as text_module
from factory.data.identifiers.files import scan_files
from factory.data.identifiers.kinds import Kind
from factory.data.identifiers.report import ScanReport, Thresholds
from factory.data.identifiers.statement import read_statement
from factory.data.pattern import Rows
from factory.errors import ScanFailed

NOTE = "Seen in clinic on 2019-03-04. BP 120/80. Plan: follow up."


def scan(folder: Any, rows: str | None = None, **options: Any) -> ScanReport:
    return scan_files(folder, rows, statement=read_statement(folder), **options)


def lines(*texts: str) -> str:
    return "".join(
        json.dumps({"id": number, "text": one}) + "\n" for number, one in enumerate(texts)
    )


def zipped(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], mode: Any = "w:gz", **facts: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for fact, value in facts.items():
                setattr(info, fact, value)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def table(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def photograph(comment: str) -> bytes:
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = comment
    Image.new("RGB", (4, 4)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_a_clean_delivery(make_delivery: Any) -> None:
    report = scan(make_delivery({"notes.jsonl": lines(NOTE, NOTE)}), "*.jsonl")
    assert not report.blocked
    assert report.counts == {Kind.DATE: 2}
    assert (report.files, report.rows, list(report.rejected)) == (1, 2, [])


def test_a_direct_identifier_blocks_and_is_pointed_to(make_delivery: Any) -> None:
    folder = make_delivery({"notes.jsonl": lines(NOTE, "MRN: 00423178", NOTE)})
    report = scan(folder, "*.jsonl")
    assert report.blocked
    assert report.why == [
        "1 x record number where 0 may be, first in notes.jsonl, row 2, offset 17"
    ]
    assert list(report.rejected) == [("notes.jsonl", 2)]
    (position,) = [one for one in report.positions if one.direct]
    assert (position.file, position.row, position.kind) == ("notes.jsonl", 2, Kind.RECORD_NUMBER)


def test_thresholds(make_delivery: Any) -> None:
    folder = make_delivery({"notes.jsonl": lines(*["MRN: 00423178"] * 3, "call 440-976-1128")})
    assert not scan(folder, thresholds=Thresholds(direct=3)).blocked
    assert len(scan(folder, thresholds=Thresholds(direct=2)).why) == 1
    some = Thresholds(allowed={Kind.RECORD_NUMBER: 3})
    assert scan(folder, thresholds=some).why[0].startswith("1 x phone")
    assert scan(folder, thresholds=Thresholds(direct=9, allowed={Kind.PHONE: 0})).blocked


def test_names_and_dates_block_only_without_surrogates(make_delivery: Any) -> None:
    files = {"a.txt": "Dr. Alvarez saw her on 2019-03-04. She is 93 years old."}
    assert not scan(make_delivery(files)).blocked
    bare = make_delivery(files, pseudonymization={"surrogates": False})
    assert len(scan(bare).why) == 3
    assert not scan(bare, thresholds=Thresholds(without_surrogates=1)).blocked


def test_every_form_of_file_is_read(make_delivery: Any) -> None:
    mail = "jane.roe@example.org"
    escaped = json.dumps({"note": mail}).replace("@", "\\u0040")
    packed = base64.b64encode(f"{mail}, a note long enough to be packed by FHIR".encode()).decode()
    inside = json.dumps({"note": json.dumps({"note": json.dumps(mail)})})
    files = {
        "l.json": inside,
        "a.txt": mail,
        "b.csv": f"id,mail\n1,{mail}\n",
        "c.json": escaped,
        "d.jsonl": f"{escaped}\n\n{escaped}\n",
        "e.xml": f"<r><x mail='{mail}'>a</x>b</r>",
        "f.txt.gz": gzip.compress(mail.encode()),
        "g.txt": mail.encode("utf-16"),
        "h.txt": f"Größe {mail}".encode("cp1252"),
        "i.json": json.dumps({"attachment": {"data": packed}}),
        "j.jpg": photograph(mail),
        "k.jsonl": f'{{"broken": "{mail}"\n',
    }
    report = scan(make_delivery(files))
    assert {one.file for one in report.positions if one.kind is Kind.EMAIL} == set(files)
    assert report.counts == {Kind.EMAIL: 13}


def test_what_cannot_be_read_blocks(make_delivery: Any) -> None:
    files = {
        "a.zip": zipped({"b.zip": zipped({"inside.txt": "x"})}),
        "b.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\x00\x01",
        "c.gz": gzip.compress(b"x" * 1000)[:20],
        "d.png": b"\x89PNG\r\n\x1a\ntruncated",
        "e.json": json.dumps({"data": base64.b64encode(bytes(range(256))).decode()}),
    }
    report = scan(make_delivery(files))
    assert {one.file for one in report.positions} == set(files)
    assert report.counts == {Kind.UNREADABLE: 5}
    assert report.blocked


def test_a_damaged_file_of_the_pattern_blocks(make_delivery: Any) -> None:
    folder = make_delivery({"a.jsonl": lines(NOTE) + '{"text": "MRN 00423178\n'})
    report = scan(folder, "*.jsonl")
    assert report.counts[Kind.UNREADABLE] == 1


def test_structured_patients(make_delivery: Any) -> None:
    patient = {
        "resourceType": "Patient",
        "identifier": [{"type": {"text": "MRN"}, "value": "S6426560"}],
        "name": [{"family": "Alvarez", "given": ["Maria"]}],
        "telecom": [{"system": "phone", "value": "440-976-1128"}],
        "birthDate": "1940-03-05",
        "address": [{"line": ["437 Coleman Plains"], "postalCode": "85020"}],
    }
    report = scan(make_delivery({"p.jsonl": json.dumps(patient)}), "*.jsonl")
    assert report.counts == {
        Kind.RECORD_NUMBER: 1,
        Kind.NAME: 2,
        Kind.PHONE: 1,
        Kind.BIRTH_DATE: 1,
        Kind.ADDRESS: 2,
    }


def test_deep_and_odd_json(make_delivery: Any) -> None:
    deep = '{"a":' * 5_000 + '"MRN: 00423178"' + "}" * 5_000
    report = scan(make_delivery({"a.json": deep, "b.json": "null", "c.json": "", "d.jsonl": "7\n"}))
    assert report.counts == {Kind.RECORD_NUMBER: 1}


@pytest.mark.parametrize(
    "text",
    [
        "Pneumonia-in-the-elderly-patients-a-Review-2019-of-outcomes-and-mortality",
        "rs123\nrs456\nBRCA1\nTP53\nrs12345\nEGFR\nkras\nrs987654\nrs1234567\nrs555555\nrs777777",
    ],
    ids=["slug", "list"],
)
def test_words_joined_are_no_packed_file(make_delivery: Any, text: str) -> None:
    assert scan(make_delivery({"a.jsonl": lines(text)})).counts == {}


def test_times_of_the_members_of_a_tar_are_no_numbers(make_delivery: Any) -> None:
    facts = {"mtime": "1659778857.285970256", "ctime": "1642604684.032845751", "atime": "-1.5"}
    content = tarred({"a.txt": b"x"}, "w", pax_headers=facts)
    assert scan(make_delivery({"a.tar": content})).counts == {}
    said = tarred({"a.txt": b"x"}, "w", pax_headers={"atime": "MRN 00423178"})
    assert scan(make_delivery({"a.tar": said})).blocked


CANARIES = {
    "mail": "canary.one@example.org",
    "number": "44210977",
    "phone": "440-976-1128",
    "street": "437 Canary Plains",
}


def test_canaries_are_in_no_output(
    make_delivery: Any, caplog: pytest.LogCaptureFixture, capfd: Any, recwarn: Any
) -> None:
    text = "MRN: {number}, {mail}, call {phone}, lives at {street}".format(**CANARIES)
    files = {
        "notes.jsonl": lines(NOTE, text),
        f"{CANARIES['mail']}.txt": text,
        "broken.jsonl": f"{text}\n",
        "broken.xml": f"<r>{text}<{CANARIES['number']}></r>",
        "broken.dcm": f"{text}" * 20,
        "broken.png": f"{text}" * 20,
    }
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG):
        report = scan(make_delivery(files), "*.{jsonl,xml}", progress=seen.append)
        report_of_rows = scan(make_delivery(files), "*.jsonl", progress=seen.append)
    outputs = [
        repr(report),
        repr(report_of_rows),
        json.dumps(report.facts()),
        json.dumps(report_of_rows.facts()),
        *seen,
        caplog.text,
        *capfd.readouterr(),
        *(str(one.message) for one in recwarn),
    ]
    assert report.blocked
    for canary in CANARIES.values():
        assert not any(canary in one for one in outputs)


def test_canaries_are_in_no_traceback(make_delivery: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    folder = make_delivery({"notes.jsonl": lines(CANARIES["mail"])})
    monkeypatch.setattr(text_module, "_look", fail)
    with pytest.raises(ScanFailed) as caught:
        scan(folder, "*.jsonl")
    shown = "".join(traceback.format_exception(caught.value))
    assert CANARIES["mail"] not in shown


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("*.xml//note", "<!-- {} --><all><note>Well.</note></all>"),
        ("*.xml//note", "<all><note>Well.</note></all><!-- {} -->"),
        ("*.xml//note", "<all><note>Well.<!-- {} --></note></all>"),
        ("*.xml//note", "<all><head>{}</head><note>Well.</note></all>"),
        ("*.xml//note", "<all owner='{}'><note>Well.</note></all>"),
        ("*.xml//note", "<all><note>Well.</note> {} </all>"),
        ("*.xml//note", "<all><note>Well.</note><?by {}?></all>"),
        ("*.xml//note", "<!DOCTYPE all [<!ENTITY by '{}'>]><all><note>Well.</note></all>"),
        ("*.xml", "<!-- {} --><all>Well.</all>"),
        ("*.xml", "<all>Well.<!-- {} --></all>"),
    ],
)
def test_what_lies_beside_the_rows_of_xml(make_delivery: Any, rows: str, text: str) -> None:
    report = scan(make_delivery({"a.xml": text.format("jane.roe@example.org")}), rows)
    assert report.counts.keys() == {Kind.EMAIL}
    assert ("a.xml", None) in report.rejected


def test_rows_of_xml_are_not_counted_twice(make_delivery: Any) -> None:
    text = "<all><note a='x'>jane.roe@example.org <b/> y</note><note>Well.</note></all>"
    report = scan(make_delivery({"a.xml": text}), "*.xml//note")
    assert report.counts == {Kind.EMAIL: 1}
    assert (report.rows, list(report.rejected)) == (2, [("a.xml", 1)])


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_name_given_twice_hides_a_value(make_delivery: Any, name: str) -> None:
    text = '{"text": "jane.roe@example.org", "text": "Well."}\n'
    report = scan(make_delivery({name: text}), name)
    assert report.counts == {Kind.UNREADABLE: 1}
    assert report.blocked


MAIL = "jane.roe@example.org"


def short(value: Any) -> str:
    """Names of tests that do not hold packed files, which hold the time."""
    return value if isinstance(value, str) and len(value) < 20 else "x"


@pytest.mark.parametrize(
    ("name", "rows", "content", "row"),
    [
        ("a.csv", "*.csv", f"id,note\r\n1,x\r\n2,{MAIL}\r\n", 2),
        ("a.tsv", "*.tsv", f"id\tnote\n1\t{MAIL}\n", 1),
        ("a.parquet", "*.parquet", table(id=[1, 2], note=["x", MAIL]), 2),
        ("a.parquet", "*.parquet", table(id=[1], image=[{"bytes": photograph(MAIL)}]), 1),
        ("a.jsonl.gz", "*.jsonl.gz", gzip.compress(lines("x", MAIL).encode()), 2),
        ("a.xml.gz", "*.xml.gz//q", gzip.compress(f"<r><q/><q>{MAIL}</q></r>".encode()), 2),
        ("a.json", Rows("*.json", keyed="id"), json.dumps({MAIL: {"note": "x"}}), 1),
        ("a.zip", "a.zip!*.jsonl", zipped({"1.jsonl": lines("x", "y"), "2.jsonl": lines(MAIL)}), 3),
        ("a.tgz", "a.tgz!*.csv", tarred({"x.csv": f"a\nx\n{MAIL}\n".encode()}), 2),
        ("a.txt", "*.txt", MAIL, None),
        ("a.txt", Rows("*.txt", encoding="utf-16-le"), MAIL.encode("utf-16-le"), None),
    ],
    ids=short,
)
def test_rows_of_every_format_are_scanned(
    make_delivery: Any, name: str, rows: str | Rows, content: str | bytes, row: int | None
) -> None:
    report = scan(make_delivery({name: content}), rows)
    assert report.counts == {Kind.EMAIL: 1}
    assert list(report.rejected) == [(name, row)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"id,{MAIL}\n"),
        ("a.xml.gz", gzip.compress(f"<!-- {MAIL} --><r/>".encode())),
        ("a.xml", "<r><x>jane.roe&#64;example.org</x></r>"),
        ("a.parquet", table(**{MAIL: pa.array([], pa.string())})),
        ("a.parquet.gz", gzip.compress(table(note=[MAIL]))),
        ("a.zip", zipped({"x.csv": f"a\n{MAIL}\n"})),
        ("a.zip", zipped({"x.parquet": table(note=[MAIL])})),
        ("a.zip", zipped({"x.jpg": photograph(MAIL)})),
        ("a.zip", zipped({"x.xml.gz": gzip.compress(f"<r>{MAIL}</r>".encode())})),
        ("a.zip", zipped({"__MACOSX/._x.csv": MAIL})),
        ("a.tar.gz", tarred({"notes.txt": MAIL.encode()})),
    ],
    ids=short,
)
@pytest.mark.parametrize("rows", [None, "*.none", "a.zip!*.none"])
def test_files_outside_the_pattern_are_scanned_by_their_format(
    make_delivery: Any, name: str, content: str | bytes, rows: str | None
) -> None:
    report = scan(make_delivery({name: content}), rows)
    assert report.counts.keys() == {Kind.EMAIL}
    assert report.blocked
    assert {row for _, row in report.rejected} <= {None, 1}


def test_what_a_zip_says_beside_its_members(make_delivery: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{MAIL}.txt", "x")
        archive.comment = MAIL.encode()
    report = scan(make_delivery({"a.zip": buffer.getvalue()}))
    assert report.counts == {Kind.EMAIL: 1, Kind.RECORD_NUMBER: 1}


def gzipped(content: bytes, **fields: bytes) -> bytes:
    """A gzip member with texts in its header: `extra`, `name`, `comment`."""
    flags = 4 * ("extra" in fields) + 8 * ("name" in fields) + 16 * ("comment" in fields)
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff"
    if "extra" in fields:
        head += len(fields["extra"]).to_bytes(2, "little") + fields["extra"]
    head += b"".join(fields[one] + b"\0" for one in ("name", "comment") if one in fields)
    return head + gzip.compress(content, mtime=0)[10:]


def skippable(content: bytes) -> bytes:
    """A zstd frame that every reader passes over."""
    return b"\x51\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


WELL = lines("Well.").encode()
BLANK = bytes(random.Random(4).choices(b" \t\n", k=500_000))
"""Lines without rows, more than is read of a packed file in one go."""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.gz", gzipped(WELL, name=MAIL.encode())),
        ("a.jsonl.gz", gzipped(WELL, extra=b"x", name=b"y", comment=MAIL.encode())),
        ("a.jsonl.gz", gzipped(WELL, extra=MAIL.encode())),
        ("a.jsonl.gz", gzipped(WELL, extra=b"\1\2\3")),
        ("a.jsonl.gz", gzip.compress(WELL) + b"\0\0" + gzipped(WELL, name=MAIL.encode())),
        ("a.jsonl.gz", gzipped(WELL + BLANK, name=b"a") + gzipped(WELL, name=MAIL.encode())),
        ("a.jsonl.zst", zstandard.compress(WELL) + skippable(MAIL.encode())),
        ("a.jsonl.zst", skippable(MAIL.encode()) + zstandard.compress(WELL + BLANK)),
        ("a.tgz", gzipped(gzip.decompress(tarred({"a.txt": b"x"})), name=MAIL.encode())),
        ("a.tar", tarred({"a.txt.gz": gzipped(b"x", name=MAIL.encode())}, "w")),
        ("a.tar", tarred({"a.txt": b"x"}, "w", uname=MAIL)),
        ("a.tar", tarred({"a.txt": b"x"}, "w", pax_headers={"comment": MAIL})),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("rows", [None, "*.jsonl.*", "a.tar!*.txt"])
def test_what_packed_files_say_beside_their_contents(
    make_delivery: Any, name: str, content: bytes, rows: str | None
) -> None:
    report = scan(make_delivery({name: content}), rows)
    unreadable = b"\1\2\3" in content
    assert report.counts == {Kind.UNREADABLE if unreadable else Kind.EMAIL: 1}
    assert (name, None) in report.rejected


def test_blocks_of_bgzip_are_no_text(make_delivery: Any) -> None:
    content = gzipped(WELL, extra=b"BC\2\0\x1b\0")
    assert scan(make_delivery({"a.jsonl.gz": content})).counts == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", gzipped(WELL, extra=b"RA\x0a\0\1\0\xcb\xe3\2\0\x17\x4e\x02\x03")),
        ("a.gz", gzipped(WELL, extra=b"SZ\4\0\x1b\0\0\0")),
        ("a.zst", skippable(b"\x1b\0\0\0") + zstandard.compress(WELL)),
        ("export_20240305.jsonl.gz", gzipped(WELL, name=b"export_20240305.jsonl")),
        ("a.jsonl.gz", gzipped(WELL, name=b"export_20240305.jsonl")),
    ],
    ids=range(5),
)
def test_what_packers_write_is_no_text(make_delivery: Any, name: str, content: bytes) -> None:
    folder = make_delivery({name: content}, pseudonymization={"surrogates": False})
    assert scan(folder).counts == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.zst", zstandard.compress(WELL) + skippable(b"x" * 2**20 + MAIL.encode())),
        ("a.gz", gzipped(WELL, name=b"x" * 2**21 + MAIL.encode())),
        ("a.gz", gzipped(WELL, comment=b"x" * 2**21)),
        ("a.gz", gzipped(WELL, extra=b"RA\x06\0\1\0\xcb\xe3\2\0")),
    ],
    ids=range(4),
)
def test_texts_too_long_to_be_read_block(make_delivery: Any, name: str, content: bytes) -> None:
    assert scan(make_delivery({name: content})).counts[Kind.UNREADABLE] == 1


@pytest.mark.parametrize(
    ("name", "rows", "content"),
    [
        ("a.csv", Rows("*.csv", ragged="reject"), f"a,b\n1,2\n1,2,{MAIL}\n"),
        ("a.jsonl", "*.jsonl", '{"a": "\\u0000"}\n'),
        ("a.csv", "*.csv", f'a,b\n"{MAIL}'),
        ("a.parquet", "*.parquet", table(note=[MAIL])[:-9]),
        ("a.zip", "a.zip!*.jsonl", zipped({"x.jsonl": lines("x")})[:-30]),
        ("a.zip", "a.zip!*.jsonl", zipped({"../x.jsonl": lines("x")})),
        ("a.jsonl.gz", "*.gz", gzip.compress(lines(MAIL).encode() * 50)[:-9]),
        ("a.txt", "*.txt", f"größer {MAIL}".encode("cp1252")),
    ],
    ids=short,
)
def test_rows_that_cannot_be_read_block(
    make_delivery: Any, name: str, rows: str | Rows, content: str | bytes
) -> None:
    report = scan(make_delivery({name: content}), rows)
    assert report.counts[Kind.UNREADABLE] >= 1
    assert report.blocked


def test_members_beside_the_rows_are_scanned_too(make_delivery: Any) -> None:
    content = zipped({"a.jsonl": lines("x"), "b.csv": f"n\n{MAIL}\n", "c.bin": b"\0\1\2"})
    report = scan(make_delivery({"a.zip": content}), "a.zip!*.jsonl")
    assert report.counts == {Kind.EMAIL: 1, Kind.UNREADABLE: 1}
