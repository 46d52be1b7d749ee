"""Whole deliveries: counts, positions, what blocks, what cannot be read, and canaries nowhere."""

import base64
import gzip
import io
import json
import logging
import traceback
import zipfile
from typing import Any

import pytest
from PIL import Image

from factory.data.identifiers import Kind, ScanReport, Thresholds, read_statement, scan_files
from factory.data.identifiers import text as text_module
from factory.errors import ScanFailed

NOTE = "Seen in clinic on 2019-03-04. BP 120/80. Plan: follow up."


def scan(folder: Any, rows: str | None = None, **options: Any) -> ScanReport:
    return scan_files(folder, rows, statement=read_statement(folder), **options)


def lines(*texts: str) -> str:
    return "".join(
        json.dumps({"id": number, "text": one}) + "\n" for number, one in enumerate(texts)
    )


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
    image = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = mail
    Image.new("RGB", (4, 4)).save(image, "JPEG", exif=exif)
    files = {
        "a.txt": mail,
        "b.csv": f"id,mail\n1,{mail}\n",
        "c.json": escaped,
        "d.jsonl": f"{escaped}\n\n{escaped}\n",
        "e.xml": f"<r><x mail='{mail}'>a</x>b</r>",
        "f.txt.gz": gzip.compress(mail.encode()),
        "g.txt": mail.encode("utf-16"),
        "h.txt": f"Größe {mail}".encode("cp1252"),
        "i.json": json.dumps({"attachment": {"data": packed}}),
        "j.jpg": image.getvalue(),
        "k.jsonl": f'{{"broken": "{mail}"\n',
    }
    report = scan(make_delivery(files))
    assert {one.file for one in report.positions if one.kind is Kind.EMAIL} == set(files)
    assert report.counts == {Kind.EMAIL: 12}


def test_what_cannot_be_read_blocks(make_delivery: Any) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("inside.txt", "x")
    files = {
        "a.zip": archive.getvalue(),
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
